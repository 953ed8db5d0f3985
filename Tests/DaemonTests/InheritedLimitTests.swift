import Foundation
import Glibc
import Testing

@Suite("What canopyd inherits from whoever starts it", .timeLimit(.minutes(25)))
struct InheritedLimitTests {
    @Test("Where the end of children is ignored, exchanges are waited for all the same")
    func ignoredChildren() throws {
        let stage = try Stage(
            under: ["/usr/bin/env", "--ignore-signal=CHLD,TERM", "--block-signal=CHLD"])
        try stage.logIn()
        try stage.expectRotation()
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
    }

    @Test(
        "A limit on the size of files loses no successor, whatever of the slot it leaves",
        arguments: [1024, 1300])
    func fileSize(_ bytes: Int) throws {
        // What is marked before the token is spent is smaller than the limit, and the successor is not.
        let stage = try Stage(
            sandbox: ["--token-bytes", "3000", "--grace", "0"],
            under: ["/usr/bin/prlimit", "--fsize=\(bytes)", "--"])
        try stage.logIn()
        for _ in 1...2 { try stage.expectRotation() }
        #expect(try stage.server.refreshes() == 2)
        try stage.server.expectNoIncident()
    }

    @Test("Nor does a log that has reached its limit end canopyd")
    func fullLog() throws {
        let directory = try TestDirectory()
        // Not as a daemon of the other tests, which begins with all signals blocked, as these do.
        let daemon = try Program(
            "canopyd", ["--log-level", "debug"],
            environment: [
                "HOME": directory.path, "XDG_RUNTIME_DIR": directory.path,
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + directory.path + "/no-bus",
            ], under: ["/usr/bin/prlimit", "--fsize=40", "--"])
        try eventually("it serves") { daemon.output.contains("Serving") }
        for _ in 1...5 {
            kill(daemon.pid, SIGHUP)
            let client = try RawClient(directory.socketPath)
            try client.send("GET /v1/profiles HTTP/1.1\r\n\r\n")
            #expect(try client.answer().status == 200)
        }
        #expect(try daemon.end(by: SIGTERM) == 0)
        #expect(daemon.output.utf8.count == 40)
    }

    @Test("No signal that can be ignored ends or halts an exchange that has spent the token")
    func straySignals() throws {
        let stage = try Stage(sandbox: ["--grace", "0"])
        try stage.logIn()
        try stage.server.plan("hold", #","when":"after""#)
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh"))
        try eventually("the answer is held back") { try stage.server.held() == 1 }
        let exchange = try #require(try stage.exchanges().first)
        for signal in 1...64 as ClosedRange<Int32> where signal != SIGKILL && signal != SIGSTOP {
            #expect(kill(exchange, signal) == 0)
            usleep(2000)
            let status = try String(contentsOfFile: "/proc/\(exchange)/status", encoding: .utf8)
            let state = status.split(separator: "\n").first { $0.hasPrefix("State:") } ?? ""
            #expect(!"ZXTt".contains(state.split(separator: "\t")[1].prefix(1)), "signal \(signal)")
        }
        try stage.server.release()
        #expect(try client.answer().status == 200)
        #expect(try stage.generation() == 1)
        #expect(try stage.server.refreshes() == 1)
        try stage.server.expectNoIncident()
    }
}
