import CLinux
import Foundation
import Glibc
import Testing

@Suite("Crowds and storms at the socket harm nobody", .timeLimit(.minutes(25)))
struct CrowdTests {
    private static let get = "GET /v1/profiles HTTP/1.1\r\n\r\n"

    @Test("F05: clients that connect and close at once leave nothing behind")
    func connectAndClose() throws {
        let crowd = try Crowd()
        for _ in 0..<10_000 { close(try crowd.connect()) }
        try crowd.expectNothingLeft()
    }

    @Test("F04: clients that ask and close before the answer leave nothing behind")
    func askAndClose() throws {
        let crowd = try Crowd()
        for index in 0..<10_000 {
            let client = try crowd.connect()
            // Some in the middle of a request, some as subscribers.
            crowd.say(
                index % 3 == 0
                    ? "GET /v1/ev" : index % 3 == 1 ? "GET /v1/events HTTP/1.1\r\n\r\n" : Self.get,
                client)
            close(client)
        }
        try crowd.expectNothingLeft()
    }

    @Test("F04: subscribers that are killed in mid-stream leave nothing behind")
    func killedSubscribers() throws {
        let crowd = try Crowd()
        let readers = try (0..<20).map { _ in
            try Program(
                "/usr/bin/python3",
                [
                    "-c",
                    """
                    import socket, sys
                    client = socket.socket(socket.AF_UNIX)
                    client.connect(sys.argv[1])
                    client.sendall(b"GET /v1/events HTTP/1.1\\r\\n\\r\\n")
                    while data := client.recv(4096): print(data, flush=True)
                    """, crowd.daemon.socketPath,
                ], environment: [:])
        }
        try eventually(within: 60, "all of them listen") {
            readers.allSatisfy { $0.output.contains("event-stream") }
        }
        for reader in readers { try reader.end(by: SIGKILL) }
        try crowd.expectNothingLeft()
    }

    @Test("10,000 idle connections are held, others are served, and all of it is given back")
    func idle() throws {
        let crowd = try Crowd()
        let clients = try (0..<10_000).map { _ in try crowd.connect() }
        #expect(try crowd.connections() == clients.count + 1)
        try crowd.daemon.connect().expectService()
        // Any of them may still ask.
        for client in [clients[0], clients[5000], clients[9999]] {
            crowd.say(Self.get, client)
            var buffer = [UInt8](repeating: 0, count: 4096)
            #expect(recv(client, &buffer, buffer.count, 0) > 0)
        }
        for client in clients { close(client) }
        try crowd.expectNothingLeft()
    }

    @Test("1,000 clients at once find room in the queue, and each is answered")
    func burst() throws {
        let crowd = try Crowd()
        kill(crowd.daemon.pid, SIGSTOP)
        let clients = try (0..<1000).map { _ in
            // None of them waits for the daemon, which cannot let it in.
            try crowd.connect(waits: false)
        }
        for client in clients { crowd.say(Self.get, client) }
        kill(crowd.daemon.pid, SIGCONT)
        for client in clients {
            var ready = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
            try #require(poll(&ready, 1, 20_000) == 1)
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(client, &buffer, buffer.count, 0)
            #expect(String(decoding: buffer[..<max(0, count)], as: UTF8.self).contains(" 200 OK"))
            close(client)
        }
        try crowd.expectNothingLeft()
    }

    @Test("Memory is bounded while thousands stop in the middle of large requests")
    func largeHalves() throws {
        let crowd = try Crowd()
        let before = try crowd.daemon.anonymousMemory()
        let head = "GET /v1/token HTTP/1.1\r\nX: " + String(repeating: "x", count: 16_000)
        let body = "POST /v1/profiles/p/login HTTP/1.1\r\nContent-Length: 65536\r\n\r\n"
        var clients: [Int32] = []
        for index in 0..<4000 {
            let client = try crowd.connect()
            crowd.say(index % 2 == 0 ? head : body, client)
            clients.append(client)
        }
        try crowd.daemon.connect().expectService()
        // The two limits are 16 and 4 MiB; the rest is what connections and the allocator take.
        #expect(try crowd.daemon.anonymousMemory() < before + 32 * 1024)
        for client in clients { close(client) }
        try crowd.expectNothingLeft()
    }

    @Test("One sign-in too many is told so, and there is room again when one is over")
    func signIns() throws {
        let crowd = try Crowd()
        // Who is told to go on with the body has room for it.
        let start =
            "POST /v1/profiles/p/login HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        let clients = try (0..<64).map { _ in try crowd.daemon.connect() }
        for client in clients {
            try client.send(start)
            #expect(try client.text(upTo: "\r\n\r\n").contains("100 Continue"))
            try client.send("{")
        }
        let refused = try crowd.daemon.connect()
        try refused.send(start)
        let answer = try refused.answer()
        #expect(answer.status == 503)
        #expect(try JSONObject(answer.body).text("code") == "too_many_connections")
        // The one that has the most of its time left.
        let last = try #require(clients.last)
        try last.send("}")
        #expect(try last.answer().status == 400)
        let admitted = try crowd.daemon.connect()
        try admitted.send(start)
        #expect(try admitted.text(upTo: "\r\n\r\n").contains("100 Continue"))
        try admitted.send("{}")
        #expect(try admitted.answer().status == 400)
    }

    @Test("Without descriptors nobody is let in, and the next one is as soon as there are some")
    func noDescriptors() throws {
        let crowd = try Crowd()
        let old = try crowd.daemon.connect()
        try old.expectService()
        let before = try crowd.limitDescriptors(to: 5)
        let client = try crowd.daemon.connect()
        try client.send(Self.get)
        try eventually("canopyd says so") {
            crowd.daemon.words.contains("No more connections for a moment")
        }
        try old.expectService()
        // Nothing closes: that there are descriptors again is found out.
        _ = try crowd.limitDescriptors(to: before)
        #expect(try client.answer().status == 200)
    }
}

/// A daemon, clients that are nothing but descriptors, and what the daemon had before they came.
private final class Crowd {
    let daemon: RunningDaemon
    private let memory: Int
    private let descriptors: Int?

    init() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try #require(
            limit.rlim_max >= 12_000, "10,000 connections want a higher limit on open files")
        daemon = try RunningDaemon()
        try eventually("the keyring has been looked for") { [daemon] in
            try Crowd.status(of: daemon).object("keyring").text("state") != "ok"
        }
        memory = try daemon.anonymousMemory()
        descriptors = getuid() == 0 ? try daemon.descriptors() : nil
    }

    func connect(waits: Bool = true) throws -> Int32 {
        let type = SOCK_STREAM.rawValue | (waits ? 0 : SOCK_NONBLOCK.rawValue)
        let client = try UnixSocket.make(__socket_type(type))
        let result = UnixSocket.call(Glibc.connect, client, daemon.socketPath)
        try #require(result == 0, "\(String(cString: strerror(errno)))")
        return client
    }

    /// Sends as much as fits; a daemon that has hung up is no fault here.
    func say(_ text: String, _ client: Int32) {
        _ = text.withCString { send(client, $0, strlen($0), Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) }
    }

    func connections() throws -> Int { try Crowd.status(of: daemon).number("connections") }

    private static func status(of daemon: RunningDaemon) throws -> JSONObject {
        let client = try daemon.connect()
        client.wait(upTo: 60)
        try client.send("GET /v1/status HTTP/1.1\r\n\r\n")
        return try JSONObject(try client.answer().body)
    }

    /// Sets the daemon's soft limit; returns what it was.
    func limitDescriptors(to count: Int) throws -> Int {
        let path = "/proc/\(daemon.pid)/limits"
        let line = try #require(
            try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
                .first { $0.hasPrefix("Max open files") })
        let before = try #require(line.split(separator: " ").dropFirst(3).first.flatMap { Int($0) })
        let program = try Program(
            "/usr/bin/prlimit", ["--pid", "\(daemon.pid)", "--nofile=\(count):"], environment: [:])
        try #require(try program.end() == 0, "\(program.output)")
        return before
    }

    /// The daemon has closed what it had opened, gives back its memory, and serves.
    func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try eventually(within: 60, "connections are gone", sourceLocation: sourceLocation) {
            try connections() == 1
        }
        if let descriptors {
            try eventually("descriptors are closed", sourceLocation: sourceLocation) {
                try daemon.descriptors() <= descriptors
            }
        }
        // What has grown and stays: a list's room for 10,000, and pages that are in use in part.
        #expect(
            try daemon.anonymousMemory() < memory + 4096, sourceLocation: sourceLocation)
        try daemon.connect().expectService(sourceLocation: sourceLocation)
    }
}
