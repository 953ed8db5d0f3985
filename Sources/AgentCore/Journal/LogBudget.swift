/// How many lines of each kind are written, so that what repeats without end fills no journal.
package struct LogBudget: Sendable {
    private struct Span {
        let began: BootTime
        var written = 1
        var suppressed: Int64 = 0
    }

    /// What becomes of a line.
    package enum Decision: Equatable, Sendable {
        /// It is written, and so many of its kind were not since the last one.
        case write(suppressed: Int64)
        case suppress
    }

    private var spans: [JournalEvent: Span] = [:]

    package init() {}

    /// Counts a line of this kind.
    package mutating func decide(_ event: JournalEvent, at now: BootTime) -> Decision {
        guard var span = spans[event], now - span.began < .seconds(Int64(Limits.logSpanSeconds))
        else {
            let suppressed = spans[event]?.suppressed ?? 0
            spans[event] = Span(began: now)
            return .write(suppressed: suppressed)
        }
        defer { spans[event] = span }
        guard span.written < Limits.logLines else {
            span.suppressed += 1
            return .suppress
        }
        span.written += 1
        return .write(suppressed: 0)
    }
}
