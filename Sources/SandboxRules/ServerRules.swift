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

    /// How many of a family's latest presentations and arrivals are kept at the least.
    ///
    /// At most twice as many: more than a test looks at, and 80 kB of a family that rotates for
    /// days.
    package static let historyLength = 1000

    /// Whether presentations and arrivals are recorded, the latest ``historyLength`` of a family.
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
