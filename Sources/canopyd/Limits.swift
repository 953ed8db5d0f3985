internal import AgentCore

/// The limits of the daemon's own turns.
extension Limits {
    /// Ready descriptors that are served before the loop takes its turn: timers and buses wait for no
    /// more than so many requests.
    ///
    /// Enforced by `DescriptorSet`, as `EventLoop` asks it to.
    static let descriptorsPerTurn = 64

    /// Ready clients that have not been served before, and are served in one turn: those that have
    /// been wait for them once in each turn, and 20,000 may come or go at once.
    ///
    /// Enforced by `DescriptorSet`, as `EventLoop` asks it to.
    static let newcomersPerTurn = 8

    /// Zeroes that a refused unit is sent at once: a part of what a socket holds.
    ///
    /// Enforced by `CredentialDelivery`.
    static let refusalPieceBytes = 32 << 10
}
