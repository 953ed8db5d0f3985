internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Running other programs.
enum Execution {
    /// Becomes the program; returns only if that fails, and says why.
    static func replace(with arguments: [String]) -> SystemError {
        var vector: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        vector.append(nil)
        // What we do about a reader that has gone, and about limits, is no other program's affair.
        signal(SIGPIPE, SIG_DFL)
        signal(SIGXFSZ, SIG_DFL)
        if let name = vector[0] { execvp(name, &vector) }
        let failure = SystemError.last("exec", arguments[0])
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        for pointer in vector { free(pointer) }
        return failure
    }

    /// Starts a program, found as a shell finds it, with these variables besides ours, and with no
    /// signal blocked.
    ///
    /// What we were told to ignore, as by nohup(1), it ignores too, but for `heard`: a shell cannot trap
    /// what it was started to ignore.
    ///
    /// `output` becomes its standard output, and its errors go nowhere then; nil for ours.
    static func start(
        _ arguments: [String], adding variables: [(name: String, value: EnvironmentValue)],
        hearing heard: Int32? = nil, output: Int32? = nil
    ) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let output {
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        sigaddset(&defaults, SIGXFSZ)
        if let heard { sigaddset(&defaults, heard) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

        var vector: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        vector.append(nil)
        defer { for pointer in vector { free(pointer) } }
        let added = variables.map { $0.value.entry(named: $0.name) }
        defer {
            for pointer in added {
                // It may be the token.
                if let pointer { explicit_bzero(pointer, strlen(pointer)) }
                free(pointer)
            }
        }
        var environment: [UnsafeMutablePointer<CChar>?] = added
        var entry = clinux_environment()
        while let pointer = entry, let text = pointer.pointee {
            let name = String(cString: text).prefix { $0 != "=" }
            if !variables.contains(where: { $0.name == name }) { environment.append(text) }
            entry = pointer + 1
        }
        environment.append(nil)
        var process: pid_t = 0
        let code = posix_spawnp(
            &process, arguments[0], &actions, &attributes, &vector, &environment)
        guard code == 0 else {
            throw SystemError("exec", code: code, subject: arguments[0])
        }
        return process
    }
}

extension Execution {
    /// Runs a program to its end, or to the deadline, when it is killed: its exit code, and the beginning of
    /// what it wrote.
    static func output(
        of arguments: [String], until deadline: BootTime
    ) throws(SystemError) -> (exitCode: Int32, text: String) {
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw .last("socketpair") }
        let reading = FileDescriptor(owning: pair[0])
        let process: pid_t
        do {
            let writing = FileDescriptor(owning: pair[1])
            process = try start(arguments, adding: [], output: writing.number)
        }
        let received = read(reading.number, until: deadline, limit: Limits.programOutputBytes)
        // It has ended, or is too late or too talkative to be of use.
        if received == nil { kill(process, SIGKILL) }
        return (wait(for: process), String(decoding: received ?? [], as: UTF8.self))
    }

    /// Everything up to the end; nil if that does not come, or not within so many bytes.
    private static func read(_ descriptor: Int32, until deadline: BootTime, limit: Int) -> [UInt8]?
    {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: Limits.readBytes)
        while received.count < limit {
            let left = max(.zero, deadline - .now)
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, Int32(clamping: left.nanoseconds / 1_000_000))
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return nil }
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count == 0 ? received : nil }
            received += chunk[..<count]
        }
        return nil
    }

    /// Waits for a program that we started; its exit code.
    static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return exitCode(of: status)
    }

    /// The exit code, 128 and the signal's number for a program that one ended, as shells say it.
    static func exitCode(of status: Int32) -> Int32 {
        status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }
}
