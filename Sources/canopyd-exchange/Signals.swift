internal import Glibc

/// What an exchange does about signals.
enum Signals {
    /// From the moment that the token may be spent until its successor is stored, nothing that
    /// asks nicely ends the process (ROTATION, "Signals").
    ///
    /// Neither do the signals that a script sends to all processes of a user, nor those with which
    /// the kernel tells of limits: a successor that the slot has no room for (`RLIMIT_FSIZE` counts
    /// for files in memory too) is stored in the keyring all the same.
    static func ignoreUntilTheEnd() {
        for number in [
            SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM,
            SIGVTALRM,
            SIGPROF, SIGIO, SIGPWR, SIGXCPU, SIGXFSZ,
        ] {
            signal(number, SIG_IGN)
        }
    }
}
