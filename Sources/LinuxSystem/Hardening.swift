internal import CLinux

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
    }
}
