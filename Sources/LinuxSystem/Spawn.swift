internal import CLinux
internal import Glibc

/// Starting a child with nothing inherited but what is passed.
package enum Spawn {
    /// Starts `executable` without arguments; descriptor n of `passing` becomes 3 + n there, and -1
    /// is left out.
    ///
    /// Standard input and output are /dev/null, standard error is ours, which has to be open.
    package static func start(_ executable: String, passing: [Int32]) throws(SystemError) -> Int32 {
        // Copies above all targets, so that no dup2 overwrites the source of a later one.
        var copies: [Int32] = []
        defer { for copy in copies where copy >= 0 { close(copy) } }
        for descriptor in passing {
            guard descriptor >= 0 else {
                copies.append(-1)
                continue
            }
            let copy = clinux_duplicate_above(descriptor, Int32(3 + passing.count))
            guard copy >= 0 else {
                // The least number that was asked for is above the limit already.
                throw SystemError("fcntl", code: errno == EINVAL ? EMFILE : errno)
            }
            copies.append(copy)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        // Takes close-on-exec away from what we opened in the place of one that was closed.
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDERR_FILENO)
        for (index, copy) in copies.enumerated() {
            if copy >= 0 {
                posix_spawn_file_actions_adddup2(&actions, copy, Int32(3 + index))
            } else {
                posix_spawn_file_actions_addclose(&actions, Int32(3 + index))
            }
        }
        // All else is closed on exec, but the kernel lets us go on before it has done that: if we were
        // killed then and started again, our locks and our socket would still be held by the child.
        clinux_add_close_from(&actions, Int32(3 + passing.count))
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var mask = sigset_t()
        sigemptyset(&mask)
        posix_spawnattr_setsigmask(&attributes, &mask)
        var defaults = sigset_t()
        sigfillset(&defaults)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(executable), nil]
        defer { arguments.forEach { free($0) } }
        var environment = childEnvironment()
        defer { environment.forEach { free($0) } }
        var process: pid_t = 0
        let code = posix_spawn(
            &process, executable, &actions, &attributes, &arguments, &environment)
        guard code == 0 else { throw SystemError("posix_spawn", code: code, subject: executable) }
        return process
    }

    /// Ours, with settings that keep stray copies of secrets from surviving: glibc overwrites what is
    /// freed, a Swift crash prints no memory, and libcurl writes no keys of its TLS connections to a
    /// file, with which whoever has recorded them reads the tokens.
    private static func childEnvironment() -> [UnsafeMutablePointer<CChar>?] {
        let settings = [
            "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.perturb=165",
            "SWIFT_BACKTRACE=enable=no",
        ]
        let dropped = ["SSLKEYLOGFILE="]
        var result = settings.map { strdup($0) }
        var entry = clinux_environment()
        while let pointer = entry, let text = pointer.pointee {
            let isOurs = (settings + dropped).contains { setting in
                let name = setting.prefix { $0 != "=" }
                return strncmp(text, String(name) + "=", name.utf8.count + 1) == 0
            }
            if !isOurs { result.append(strdup(text)) }
            entry = pointer + 1
        }
        result.append(nil)
        return result
    }
}
