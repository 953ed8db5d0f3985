/// Things that are due, earliest first; a second at a time, because a million entries of a heap cost
/// more than what they stand for.
struct EventQueue {
    struct Entry: Comparable {
        /// Nanoseconds.
        let time: Int64
        let agent: Int32

        static func < (left: Entry, right: Entry) -> Bool {
            (left.time, left.agent) < (right.time, right.agent)
        }
    }

    private static let second: Int64 = 1_000_000_000
    private var seconds: [[Entry]]
    private var current = 0
    /// The entries of the current second, latest first.
    private var present: [Entry] = []

    /// What is due at `length` seconds or later is dropped.
    init(length: Int64) {
        seconds = Array(repeating: [], count: Int(length))
    }

    /// `time` is not before the entry that was taken last.
    mutating func add(_ agent: Int32, at time: Int64) {
        let entry = Entry(time: time, agent: agent)
        let second = Int(time / EventQueue.second)
        guard second < seconds.count else { return }
        guard second == current, !present.isEmpty || seconds[second].isEmpty else {
            return seconds[second].append(entry)
        }
        var low = 0
        var high = present.count
        while low < high {
            let middle = (low + high) / 2
            if present[middle] > entry { low = middle + 1 } else { high = middle }
        }
        present.insert(entry, at: low)
    }

    mutating func next() -> Entry? {
        while present.isEmpty {
            guard !seconds[current].isEmpty else {
                guard current + 1 < seconds.count else { return nil }
                current += 1
                continue
            }
            present = seconds[current].sorted(by: >)
            seconds[current] = []
        }
        return present.removeLast()
    }
}
