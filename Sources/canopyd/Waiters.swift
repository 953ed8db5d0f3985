internal import AgentCore

/// The clients that wait for one profile's machine.
///
/// Coming, going and asking for the earliest deadline cost the same however many wait: thousands
/// may come, and hang up, at once.
struct Waiters {
    private var byClient: [ClientID: ServedProfile.Waiter] = [:]
    private var earliest: BootTime?
    private var earliestIsStale = false

    var isEmpty: Bool { byClient.isEmpty }

    /// The earliest deadline; nil while nobody waits.
    var nextDeadline: BootTime? {
        mutating get {
            if earliestIsStale {
                earliestIsStale = false
                earliest = byClient.values.map(\.deadline).min()
            }
            return earliest
        }
    }

    /// A connection has one request at a time, so that a client stands here once.
    mutating func add(_ waiter: ServedProfile.Waiter) {
        byClient[waiter.client] = waiter
        if !earliestIsStale { earliest = min(waiter.deadline, earliest ?? waiter.deadline) }
    }

    mutating func remove(_ client: ClientID) {
        guard let gone = byClient.removeValue(forKey: client) else { return }
        if gone.deadline == earliest { earliestIsStale = true }
    }

    /// Notes that an exchange has ended since they all came.
    mutating func noteAttempt() {
        for client in byClient.keys { byClient[client]?.sawAttempt = true }
    }

    /// Takes out those for whom there is a reply, who came first first.
    mutating func take(
        _ reply: (inout ServedProfile.Waiter) -> Reply?
    ) -> [(ClientID, Reply)] {
        var taken: [(ClientID, Reply)] = []
        for client in byClient.keys.sorted(by: { $0.number < $1.number }) {
            guard var waiter = byClient[client] else { continue }
            if let reply = reply(&waiter) {
                byClient[client] = nil
                taken.append((client, reply))
            } else {
                byClient[client] = waiter
            }
        }
        if !taken.isEmpty { earliestIsStale = true }
        return taken
    }
}
