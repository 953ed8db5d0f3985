internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Running other programs.
enum Execution {
    /// Becomes the program; returns only if that fails, and says why.
    static func replace(with arguments: [String]) -> SystemError {
        var vector: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        vector.append(nil)
        // What we do about a reader that has gone is no other program's affair.
        signal(SIGPIPE, SIG_DFL)
        if let name = vector[0] { execvp(name, &vector) }
        let failure = SystemError.last("exec", arguments[0])
        signal(SIGPIPE, SIG_IGN)
        for pointer in vector { free(pointer) }
        return failure
    }

    /// Starts a program, found as a shell finds it, with these variables besides ours, and with no
    /// signal blocked or ignored.
    static func start(
        _ arguments: [String], adding variables: [(name: String, value: EnvironmentValue)]
    ) throws(SystemError) -> pid_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
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
        let code = posix_spawnp(&process, arguments[0], nil, &attributes, &vector, &environment)
        guard code == 0 else {
            throw SystemError("exec", code: code, subject: arguments[0])
        }
        return process
    }
}

extension Execution {
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
