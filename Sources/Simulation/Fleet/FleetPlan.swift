/// What a fleet of agents goes through: its server disappears, and comes back with some capacity.
package struct FleetPlan: Sendable {
    /// How the server says no.
    package enum Refusal: String, Sendable, CaseIterable {
        /// Nobody listens.
        case refused
        /// Nobody answers: a connection is given up after 10 s.
        case silent
        /// A gateway answers 502 with a page of its own.
        case gateway
        /// 503 without `Retry-After`.
        case unavailable
        /// 503 with `Retry-After` in seconds: what is left of the outage; 30 s under overload.
        case told
        /// 503 with `Retry-After` as a date: the end of the outage; in 30 s under overload.
        case toldDate = "told-date"
        /// 429 with `Retry-After` in seconds, as ``told``.
        case throttled
    }

    package var seed: UInt64 = 1
    package var agents = 1_000_000

    /// Seconds that an access token lives; 900 is Canopy's.
    package var lifetime: Int64 = 900

    /// Whether agents rotate when asked and once a day, and nobody asks.
    package var isOnDemand = false

    /// Seconds before the outage, during it, and after it.
    package var before: Int64 = 900
    package var outage: Int64 = 3600
    package var after: Int64 = 5400

    /// Requests per second that the server bears once it is back, in multiples of the flat rate;
    /// nil for any number.
    package var capacity: Double?

    /// What is answered during the outage.
    package var absence = Refusal.refused

    /// What is answered to a request above the capacity.
    package var overload = Refusal.unavailable

    package init() {}

    /// Seconds of the whole run.
    package var length: Int64 { before + outage + after }

    /// Requests per second of the fleet while nothing is wrong: one rotation per agent in 80 % of
    /// the lifetime, the middle of the range that the rotation point is drawn from.
    package var flatRate: Double {
        Double(agents) / (Double(lifetime) * 0.8)
    }
}
