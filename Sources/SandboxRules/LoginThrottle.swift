package import AgentCore

/// Counts sign-in requests per address: 5 in 15 minutes, as Canopy's guide says.
///
/// Every request counts, the successful too. A refused one does not: whoever waits gets in.
package struct LoginThrottle: Sendable {
    /// Requests that one address may make within ``window``.
    ///
    /// Canopy's Direct API guide: 5.
    package static let requests = 5

    /// The span in which they count.
    ///
    /// Canopy's Direct API guide: 15 minutes.
    package static let window = TimeSpan.seconds(15 * 60)

    private var admitted: [UInt64: [WallTime]] = [:]

    /// Nobody has signed in yet.
    package init() {}

    /// Counts a request; nil if it may go on, else how long until the next one may.
    package mutating func wait(address: UInt64, at now: WallTime) -> TimeSpan? {
        var times = admitted[address, default: []]
        times.removeAll { now - $0 >= Self.window }
        defer { admitted[address] = times }
        if times.count >= Self.requests, let oldest = times.first {
            return Self.window - (now - oldest)
        }
        times.append(now)
        return nil
    }
}
