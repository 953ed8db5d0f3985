/// What a subscriber has not been sent yet: of each key one event at most, the latest.
///
/// The bytes are shared with the other subscribers that wait for them.
package struct EventQueue: Sendable {
    /// What is being sent; nil when nothing waits.
    package private(set) var current: [UInt8]?

    /// How many of the current event's bytes have been sent.
    package private(set) var sent = 0
    private var waiting: [(key: String, event: [UInt8])] = []

    package init() {}

    /// Events behind the current one.
    package var count: Int { waiting.count }

    /// Queues an event, in place of one of the same key that is not being sent yet.
    package mutating func add(_ event: [UInt8], key: String) {
        guard !event.isEmpty else { return }
        guard current != nil else {
            current = event
            return
        }
        // At the end, not where the older one stood: ids increase.
        waiting.removeAll { $0.key == key }
        waiting.append((key, event))
    }

    /// Notes that `count` more bytes of the current event are sent.
    package mutating func advance(by count: Int) {
        sent += count
        guard let current, sent == current.count else { return }
        sent = 0
        self.current = waiting.isEmpty ? nil : waiting.removeFirst().event
    }
}
