internal import CLinux
internal import Glibc

/// What an exchange does about signals.
enum Signals {
    /// From the moment that the token may be spent until its successor is stored, no signal that
    /// somebody can send ends the process, or halts it, but SIGKILL and SIGSTOP (ROTATION, "Signals").
    ///
    /// All 64 of them: those that ask nicely, those that a script sends to every process of a user,
    /// those with which the kernel tells of limits (a successor that the slot has no room for, since
    /// `RLIMIT_FSIZE` counts for files in memory too, is stored in the keyring all the same), and those
    /// that a crash has. A crash ends the process nevertheless: the kernel lets nobody ignore a fault of
    /// its own, nor does `abort`. What has a handler is left to it.
    static func ignoreUntilTheEnd() {
        for number in 1...CLINUX_LAST_SIGNAL where !harmless.contains(number) {
            clinux_ignore_if_default(number)
        }
    }

    /// What ends and halts nothing by itself, and the two that no process can ignore.
    ///
    /// To ignore SIGCHLD would take from libraries the ends of the processes that they start.
    private static let harmless = [SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG, SIGWINCH]
}
