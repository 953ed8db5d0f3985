internal import AgentCore
internal import LinuxSystem

/// Hands each token on once, and tries again where that failed: a disk that is full now may not be in
/// a moment, and the next rotation comes when the token before has all but expired.
struct Handover {
    private var handedOn: Freshness?
    private var late: (fresh: Freshness, retryAt: BootTime, words: String)?

    /// When ``retry(_:)`` has something to do; nil for never.
    var retryAt: BootTime? { late?.retryAt }

    /// Hands on the token that an event tells of, if it is another one.
    mutating func take(
        _ fresh: Freshness, _ handOn: (Freshness) throws(Complaint) -> Void
    ) {
        if fresh != handedOn { attempt(fresh, handOn) }
    }

    /// Hands on what could not be, if it is time.
    mutating func retry(_ handOn: (Freshness) throws(Complaint) -> Void) {
        if let late, late.retryAt <= .now { attempt(late.fresh, handOn) }
    }

    private mutating func attempt(
        _ fresh: Freshness, _ handOn: (Freshness) throws(Complaint) -> Void
    ) {
        do throws(Complaint) {
            try handOn(fresh)
            handedOn = fresh
            late = nil
        } catch {
            // The same again is no news.
            if late?.fresh != fresh || late?.words != error.line { error.print() }
            late = (fresh, .now + .seconds(Int64(Limits.handoverRetrySeconds)), error.line)
        }
    }
}
