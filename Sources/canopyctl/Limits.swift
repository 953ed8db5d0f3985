internal import AgentCore

/// The limits of the command line.
extension Limits {
    /// Bytes of a password or a code: what Linux lets one type in one line (N_TTY, 4096).
    ///
    /// Enforced by `SecretLines` and `Terminal`.
    static let passwordBytes = 4096

    /// Bytes of what a tool says on standard input when it asks for a credential.
    ///
    /// A URL and a password. Enforced by `StandardInput`.
    static let credentialRequestBytes = 64 << 10

    /// Seconds without a byte after which canopyctl takes a subscription for dead: canopyd sends a
    /// comment each 60 s.
    ///
    /// Enforced by `Subscription`.
    static let eventSilenceSeconds = 150

    /// Seconds from one try to subscribe again to the next: half a second at first, then this.
    ///
    /// Enforced by `Subscription`.
    static let subscriptionRetrySeconds = 15

    /// Seconds from one try to hand a token on to the next, where it fails.
    ///
    /// Enforced by `Handover`.
    static let handoverRetrySeconds = 5

    /// Seconds that a program gets to end before it is killed, when it is to be started again.
    ///
    /// Enforced by `Supervision`.
    static let restartPatienceSeconds = 10

    /// Seconds that canopyctl waits for what canopyd asks the server: an exchange, its lock and its
    /// own deadlines fit.
    ///
    /// Enforced by `ClientConnection`, as `Login` and others ask it to.
    static let clientServerSeconds = 60

    /// Bytes of a program's output that is read to its end: a page of `systemctl show` has some hundreds.
    ///
    /// Enforced by `Execution`.
    static let programOutputBytes = 64 << 10

    /// Links that lead to a token file: as many as the kernel follows (path_resolution(7)).
    ///
    /// Enforced by `TokenFile`.
    static let linksFollowed = 40

    /// Bytes of /etc/passwd: 80,000 users.
    ///
    /// Enforced by `SystemCheck`.
    static let userListBytes = 8 << 20

    /// Bytes that may be locked below which the doctor warns: canopyd and an exchange lock two tokens of
    /// the largest size, and some.
    ///
    /// systemd's default. Enforced by the kernel; `SystemCheck` looks at it.
    static let lockedMemoryBytes: UInt64 = 8 << 20

    /// Milliseconds until canopyd is looked for again for the first time; then
    /// ``subscriptionRetrySeconds`` at the most.
    ///
    /// Enforced by `Subscription`.
    static let subscriptionFirstRetryMilliseconds: Int64 = 500
}
