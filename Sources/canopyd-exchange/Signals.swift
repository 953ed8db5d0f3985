internal import Glibc

/// What an exchange does about signals.
enum Signals {
    /// From the moment that the token may be spent until its successor is stored, nothing that
    /// asks nicely ends the process (ROTATION, "Signals").
    static func ignoreUntilTheEnd() {
        for number in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGPIPE] {
            signal(number, SIG_IGN)
        }
    }
}
