import CLinux
import Foundation
import Glibc
import Testing

/// A process that a test started, and ends.
final class Program {
    let pid: pid_t
    private let log: Int32
    private var isOver = false

    /// Starts a program of this package by its name, or any by its path.
    ///
    /// `wrapper` is a command that runs it in its own place. One that talks has its standard input and
    /// output on `conversation`, and only its errors among its ``output``.
    init(
        _ name: String, _ arguments: [String] = [], environment: [String: String],
        input: String = "", under wrapper: [String] = [], talkingOver conversation: Int32? = nil
    ) throws {
        let program = name.hasPrefix("/") ? name : try Program.builtPath(name)
        let command = wrapper + [program] + arguments
        let path = command[0]
        log = clinux_memfd_create("output")
        let stdin = clinux_memfd_create("input")
        defer { close(stdin) }
        let bytes = Array(input.utf8)
        try #require(write(stdin, bytes, bytes.count) == bytes.count)
        lseek(stdin, 0, SEEK_SET)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, conversation ?? stdin, 0)
        posix_spawn_file_actions_adddup2(&actions, conversation ?? log, 1)
        posix_spawn_file_actions_adddup2(&actions, log, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The threads that tests run on block signals, and a child would go on doing so.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var argv = command.map { strdup($0) } + [nil]
        var envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, path, &actions, &attributes, &argv, &envp)
        try #require(code == 0, "\(path): \(String(cString: strerror(code)))")
        self.pid = pid
    }

    deinit {
        if !isOver {
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
        close(log)
    }

    /// Everything it has written so far.
    var output: String { CanopydProgram.contents(log) }

    /// The exit status, or 128 and the signal; `signal` is sent first.
    @discardableResult
    func end(by signal: Int32? = nil, within seconds: Double = 60) throws -> Int32 {
        if let signal { kill(pid, signal) }
        var status: Int32 = 0
        try eventually(within: seconds, "a program ends") { waitpid(pid, &status, WNOHANG) == pid }
        isOver = true
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    /// Beside the test bundle.
    private static func builtPath(_ name: String) throws -> String {
        let canopyd = try CanopydProgram.path
        let path = URL(fileURLWithPath: canopyd).deletingLastPathComponent().path + "/" + name
        try #require(access(path, X_OK) == 0, "\(name) is not built")
        return path
    }
}

/// Waits until something observable is so, for things that announce themselves to nobody.
///
/// The condition is asked again every 10 ms; what is never so fails the test at the deadline, which is
/// later under a sanitizer, and on a machine that is busy when it comes.
func eventually(
    within seconds: Double = 30, _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () throws -> Bool
) throws {
    let seconds = seconds * Double(Sanitizer.slowness)
    let start = Date()
    while !(try condition()) {
        let elapsed = Date().timeIntervalSince(start)
        try #require(
            elapsed < seconds || elapsed < seconds * Machine.crowding,
            "not within \(seconds) s: \(what)", sourceLocation: sourceLocation)
        usleep(10_000)
    }
}

/// Whether something is done within a time at one of three tries: a busy machine may spoil the others.
///
/// `body` prepares it, takes the time that it returns, and does it.
func isDone(
    within limit: Duration, _ body: () throws -> ContinuousClock.Instant
) rethrows -> Bool {
    for _ in 1...3 {
        let start = try body()
        if ContinuousClock.now - start < .promised(limit) { return true }
    }
    return false
}
