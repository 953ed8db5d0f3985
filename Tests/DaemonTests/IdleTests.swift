import Foundation
import Glibc
import Testing

@Suite("Idleness", .timeLimit(.minutes(25)), .serialized)
struct IdleTests {
    @Test("Between two rotations canopyd sleeps in one system call, and nothing wakes it")
    func idle() throws {
        let stage = try Stage()
        try stage.logIn()
        _ = try stage.goodToken()
        // A process that makes a system call has been switched to. The kernel may have real news
        // of the network while we look, so one quiet window out of three is enough: a timer of
        // our own would spoil each.
        var isQuiet = false
        for _ in 1...3 where !isQuiet {
            sleep(1)
            let before = try switches(stage.daemon.pid)
            sleep(5)
            isQuiet = try switches(stage.daemon.pid) == before
        }
        #expect(isQuiet)
        #expect(try stage.exchanges().isEmpty)
    }

    private func switches(_ pid: pid_t) throws -> [Substring] {
        try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
            .split(separator: "\n").filter { $0.contains("ctxt_switches") }
    }
}
