import CLinux
import Foundation
import Glibc
import Testing

/// The built program, run as a process in a session of its own, so without a terminal.
struct Canopyctl {
    /// How a run ended and what it said.
    struct Outcome {
        let exitCode: Int32
        let output: String
        let words: String
    }

    /// Beside the test bundle.
    static var path: String {
        get throws {
            let bundle = try FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/exe")
            let candidates = [bundle, CommandLine.arguments.first ?? ""].map {
                URL(fileURLWithPath: $0).deletingLastPathComponent().path + "/canopyctl"
            }
            return try #require(
                candidates.first { access($0, X_OK) == 0 }, "canopyctl is not built")
        }
    }

    /// Runs it, or another program, against `daemon` with `input` on standard input.
    static func run(
        _ arguments: [String], daemon: FakeDaemon? = nil, environment: [String: String] = [:],
        input: String = "", program: String? = nil
    ) throws -> Outcome {
        var variables = environment
        if let daemon { variables["CANOPYD_SOCKET"] = daemon.socketPath }
        let (stdin, stdout, stderr) = (try file(), try file(), try file())
        defer { for descriptor in [stdin, stdout, stderr] { close(descriptor) } }
        let bytes = Array(input.utf8)
        #expect(write(stdin, bytes, bytes.count) == bytes.count)
        lseek(stdin, 0, SEEK_SET)
        let pid = try spawn([try program ?? path] + arguments, variables) { actions in
            posix_spawn_file_actions_adddup2(&actions, stdin, 0)
            posix_spawn_file_actions_adddup2(&actions, stdout, 1)
            posix_spawn_file_actions_adddup2(&actions, stderr, 2)
        }
        return Outcome(
            exitCode: try wait(pid), output: contents(stdout), words: contents(stderr))
    }

    /// Starts a program as the leader of a new session.
    static func spawn(
        _ arguments: [String], _ environment: [String: String],
        _ prepare: (inout posix_spawn_file_actions_t) -> Void
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        prepare(&actions)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID, which glibc hides behind _GNU_SOURCE.
        posix_spawnattr_setflags(&attributes, 0x80 | Int16(POSIX_SPAWN_SETSIGMASK))
        // The threads that tests run on block signals, and a shell would go on doing so.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var argv = arguments.map { strdup($0) } + [nil]
        var envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        var pid: pid_t = 0
        let failure = posix_spawn(&pid, arguments[0], &actions, &attributes, &argv, &envp)
        try #require(failure == 0)
        return pid
    }

    /// The exit status; 128 and the signal for a program that one ended.
    static func wait(_ pid: pid_t) throws -> Int32 {
        var status: Int32 = 0
        try #require(waitpid(pid, &status, 0) == pid)
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    private static func file() throws -> Int32 {
        let descriptor = clinux_memfd_create("canopyctl-test")
        try #require(descriptor >= 0)
        return descriptor
    }

    private static func contents(_ descriptor: Int32) -> String {
        lseek(descriptor, 0, SEEK_SET)
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: result, as: UTF8.self) }
            result += buffer[..<count]
        }
    }
}
