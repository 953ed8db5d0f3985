import Foundation
import Glibc
import Testing

@Suite("What a request costs is counted, and not timed", .timeLimit(.minutes(25)), .serialized)
struct RequestCostTests {
    /// `epoll_wait`, `recvfrom`, `sendto`: as few as any server has.
    private static let callsOfKept = 3

    /// The same, and to let the client in and out: `accept4` twice, `getsockopt` for who it is,
    /// `epoll_ctl` twice, two reads that find nothing and the end, two more `epoll_wait`, for it is a
    /// newcomer among newcomers, and `close`.
    private static let callsOfFresh = 13

    /// `epoll_wait`, `accept4`, `getsockopt`, `recvfrom`, `sendto`, which fails, and `close`.
    private static let callsOfGone = 6

    private static let requests = 200

    /// For news of the world that may come meanwhile; on a busy machine more of it than on a quiet
    /// one, and half of what one call more for each request would be.
    private static let strayCalls = requests / 2

    private static let request = Stage.request("GET", "/v1/token")

    @Test("A cached token on a kept connection costs three system calls")
    func kept() throws {
        let calls = try traced { stage in
            let client = try stage.daemon.connect()
            for _ in 0..<Self.requests {
                try client.send(Self.request)
                #expect(try client.answer().status == 200)
            }
        }
        #expect(
            calls.count <= Self.requests * Self.callsOfKept + Self.strayCalls,
            "\(Self.byName(calls))")
    }

    @Test("A cached token on a connection of its own costs ten more")
    func fresh() throws {
        let calls = try traced { stage in
            for _ in 0..<Self.requests {
                let client = try stage.daemon.connect()
                try client.send(Self.request)
                #expect(try client.answer().status == 200)
            }
        }
        #expect(
            calls.count <= Self.requests * Self.callsOfFresh + Self.strayCalls,
            "\(Self.byName(calls))")
    }

    @Test("One that has asked and is gone costs six calls, and then it is the others' turn")
    func gone() throws {
        let calls = try traced { stage in
            // They are gone by the time that canopyd looks at the first.
            kill(stage.daemon.pid, SIGSTOP)
            for _ in 0..<Self.requests {
                try stage.daemon.connect().send(Self.request)
            }
            kill(stage.daemon.pid, SIGCONT)
            try stage.daemon.connect().expectService()
        }
        #expect(
            calls.count <= Self.requests * Self.callsOfGone + Self.strayCalls,
            "\(Self.byName(calls))")
        #expect(
            calls.count { $0 == "epoll_wait" } >= Self.requests - 1, "\(Self.byName(calls))")
        #expect(
            calls.count { $0 == "epoll_ctl" } <= Self.strayCalls, "who is gone is not watched")
    }

    @Test("Whoever has asked before waits for few of a crowd that goes all at once")
    func crowdThatGoes() throws {
        let crowd = 500
        let lines = try lines { stage in
            let client = try stage.daemon.connect()
            for _ in 0..<2 {
                try client.send(Self.request)
                #expect(try client.answer().status == 200)
            }
            try withExtendedLifetime(
                (0..<crowd).map { _ in try stage.daemon.connect() }
            ) {
                try eventually("they are let in") {
                    try JSONObject(try stage.ask("GET", "/v1/status").body)
                        .number("connections") > crowd
                }
                kill(stage.daemon.pid, SIGSTOP)
            }
            // They are gone by now, and canopyd has still to find out.
            try client.send(Self.request)
            kill(stage.daemon.pid, SIGCONT)
            #expect(try client.answer().status == 200)
        }
        let last = try #require(lines.lastIndex(where: Self.isRequest))
        let before = try #require(lines[..<last].lastIndex(where: Self.isRequest))
        func closes(_ lines: ArraySlice<Substring>) -> Int {
            lines.count { $0.hasPrefix("close(") }
        }
        #expect(closes(lines[before..<last]) < crowd / 10)
        #expect(closes(lines[last...]) > crowd - crowd / 10, "the crowd had not gone at once")
    }

    @Test("That a hundred sign-ins have ended is put on record together, and not for each")
    func record() throws {
        let lines = try lines { stage in _ = try stage.crowd(100) }
        let writes = lines.count { $0.hasPrefix("rename") && $0.contains("/notice.json") }
        #expect(1...2 ~= writes)
    }

    private static func isRequest(_ line: Substring) -> Bool {
        line.contains(#", "GET /v1/token HTTP/1.1\r\n"#)
    }

    /// The names of canopyd's calls from the first of a body's requests to the last.
    private func traced(_ body: (Stage) throws -> Void) throws -> [Substring] {
        let lines = try lines(body)
        let first = try #require(lines.firstIndex(where: Self.isRequest))
        let last = try #require(lines.lastIndex(where: Self.isRequest))
        let calls = lines[first..<last].map { $0.prefix { $0 != "(" } }
        try #require(
            lines.count(where: Self.isRequest) == Self.requests, "not every request is in the trace"
        )
        return calls
    }

    /// Canopyd's calls, a line each, while there is a token and a body runs.
    private func lines(_ body: (Stage) throws -> Void) throws -> [Substring] {
        let desktop = try PrivateDesktop()
        let path = desktop.directory.path + "/calls"
        let stage = try Stage(
            on: desktop,
            under: ["/usr/bin/strace", "-D", "-qq", "-e", "signal=none", "-o", path])
        try stage.logIn()
        // What is asked first is parsed, and rendered.
        _ = try stage.goodToken()
        try body(stage)
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        var lines: [Substring] = []
        try eventually("the trace is complete") {
            lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            return lines.last?.hasPrefix("exit_group(") == true
        }
        // A watch that outlives its descriptor would be taken away from whoever has its number next.
        #expect(!lines.contains { $0.hasPrefix("epoll_ctl(") && $0.contains("EBADF") })
        return lines
    }

    private static func byName(_ calls: [Substring]) -> [Substring: Int] {
        Dictionary(grouping: calls) { $0 }.mapValues(\.count)
    }
}
