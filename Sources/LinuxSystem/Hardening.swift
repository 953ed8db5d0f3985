internal import CLinux
internal import Glibc

/// What a process that holds secrets gives up at its start.
package enum Hardening {
    /// No core dumps, no tracing by others of the same user, no new privileges, private files.
    ///
    /// That one of them is refused is ignored: each is a layer of its own.
    package static func apply() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = clinux_set_dumpable(0)
        _ = clinux_no_new_privileges()
        umask(0o077)
        leaveCrashesToTheKernel()
    }

    /// Takes back the signals that the Swift runtime took before the first line of ours ran.
    ///
    /// Where its backtracer is installed, which is wherever Swift is, a crash would print registers
    /// and the memory that they point to, into the log; and a process that was told to abort, as the
    /// watchdog does, would print and live on.
    package static func leaveCrashesToTheKernel() {
        for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] {
            signal(number, SIG_DFL)
        }
    }
}
