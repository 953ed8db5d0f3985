import Foundation
import Testing

@Suite("scripts/mutate", .timeLimit(.minutes(25)))
struct MutateTests {
    @Test(
        "When it is ended, so is what it has started, and its folder is gone",
        arguments: [SIGTERM, SIGINT, SIGHUP])
    func ended(by number: Int32) throws {
        let directory = URL(fileURLWithPath: NSTemporaryDirectory())
            .appendingPathComponent("canopyd-mutate-\(UUID().uuidString)")
        let scratch = directory.appendingPathComponent("scratch")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        // A build that takes long, with a process of its own that does not hear what it is told.
        let swift = directory.appendingPathComponent("swift")
        try """
        #!/bin/sh
        sh -c 'trap "" TERM; exec sleep 600' &
        echo $$ $! >'\(directory.path)/started.new'
        mv '\(directory.path)/started.new' '\(directory.path)/started'
        wait
        """.write(
            to: directory.appendingPathComponent("script"), atomically: true, encoding: .utf8)
        // Another test's child has for a moment whatever is open here, and what is open for writing
        // cannot be run: so another process writes what is.
        let install = try Process.run(
            URL(fileURLWithPath: "/usr/bin/install"),
            arguments: [directory.path + "/script", swift.path])
        install.waitUntilExit()
        try #require(install.terminationStatus == 0)

        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path
        let mutate = Process()
        mutate.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        mutate.arguments = [root + "/scripts/mutate"]
        mutate.environment = [
            "PATH": directory.path + ":/usr/bin:/bin", "TMPDIR": scratch.path,
        ]
        mutate.standardOutput = FileHandle.nullDevice
        mutate.standardError = FileHandle.nullDevice
        try mutate.run()
        var started: [pid_t] = []
        try wait("the build has begun") {
            let text = try? String(
                contentsOf: directory.appendingPathComponent("started"), encoding: .utf8)
            started = text?.split(whereSeparator: \.isWhitespace).compactMap { pid_t($0) } ?? []
            return started.count == 2
        }
        kill(mutate.processIdentifier, number)
        mutate.waitUntilExit()
        #expect(mutate.terminationReason == .exit && mutate.terminationStatus == 128 + number)
        try wait("what it started has ended") { !started.contains(where: isAlive) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).isEmpty)
    }

    /// One that has ended and that nobody has waited for is not alive.
    private func isAlive(_ process: pid_t) -> Bool {
        let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return status.map { !$0.contains(") Z ") } ?? false
    }

    private func wait(_ what: String, until isTrue: () -> Bool) throws {
        let end = Date(timeIntervalSinceNow: 60)
        while !isTrue() {
            try #require(Date() < end, "\(what): not within a minute")
            usleep(20_000)
        }
    }
}
