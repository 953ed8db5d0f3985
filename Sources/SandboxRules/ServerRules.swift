package import AgentCore

/// What Canopy's documents leave open, or leave to the environment's owner.
package struct ServerRules: Sendable {
    /// How long after its rotation a retired token may still be a harmless retry, the last
    /// instant included.
    ///
    /// The documents say "moments ago" and no number.
    package var grace = TimeSpan.seconds(10)

    /// What a harmless retry is answered with.
    package var graceAnswer = GraceAnswer.sameSuccessor

    /// How long a refresh token lives from its issue; nil for ever.
    package var refreshTokenLifetime: TimeSpan?

    /// Whether sign-ins are throttled.
    package var throttlesSignIns = true

    /// Whether presentations and arrivals are recorded, the latest ``Limits/sandboxHistory`` of a family.
    ///
    /// A simulator of millions of steps goes without; the counters work either way.
    package var keepsHistory = true

    /// The documented rules, and the usual assumptions where there are none.
    package init() {}

    /// What a harmless retry may be answered with.
    package enum GraceAnswer: Sendable {
        /// The successor that the lost answer carried.
        case sameSuccessor
        /// A token of its own, which retires the successor of the lost answer.
        case newSuccessor
    }
}
