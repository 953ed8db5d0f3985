internal import AgentCore

/// Connections with a deadline, the earliest first: all wait equally long, so that they stand in
/// the order in which they were added, and adding and removing costs the same however many wait.
final class Deadlines {
    private let span: TimeSpan
    /// Who has waited longest.
    private(set) var first: Connection?
    private var last: Connection?

    init(_ span: TimeSpan) {
        self.span = span
    }

    /// The earliest deadline; nil while nobody waits.
    var next: BootTime? { first?.deadline.time }

    func add(_ connection: Connection, at now: BootTime) {
        precondition(connection.deadline.list == nil, "a connection waits for one thing at a time")
        connection.deadline = Place(time: now + span, list: self, previous: last)
        last?.deadline.next = connection
        if first == nil { first = connection }
        last = connection
    }

    fileprivate func remove(_ connection: Connection) {
        let place = connection.deadline
        connection.deadline = Place()
        if let previous = place.previous {
            previous.deadline.next = place.next
        } else {
            first = place.next
        }
        if let next = place.next {
            next.deadline.previous = place.previous
        } else {
            last = place.previous
        }
    }

    /// Takes out a connection whose deadline has come.
    func expired(at now: BootTime) -> Connection? {
        guard let first, let time = first.deadline.time, time <= now else { return nil }
        remove(first)
        return first
    }

    /// A connection's own part of the list.
    struct Place {
        fileprivate(set) var time: BootTime?
        fileprivate(set) var list: Deadlines?
        fileprivate unowned(unsafe) var previous: Connection?
        fileprivate var next: Connection?
    }
}

extension Connection {
    /// Takes the connection off the list that it stands in, if it stands in one.
    func endDeadline() {
        deadline.list?.remove(self)
    }
}
