extension RotationMachine {
    /// The time after an exchange that brought nothing.
    package struct Pause: Equatable, Sendable {
        package let failure: Failure
        package let until: BootTime
        /// The wait that the next one grows from; nil where none came from back-off since the
        /// failures began.
        package let backOff: TimeSpan?
    }
}

extension RotationMachine.Pause {
    /// The same one with another end.
    func ending(at time: BootTime) -> RotationMachine.Pause {
        RotationMachine.Pause(failure: failure, until: time, backOff: backOff)
    }

    /// How long it is for a failure.
    ///
    /// `last` is the wait that it grows from, nil for the first; `lifetime` the one of the session's access
    /// tokens, and `leisure` for how long the one in hand still serves.
    init(
        of failure: Failure, after last: TimeSpan?, lifetime: TimeSpan?, leisure: TimeSpan,
        at now: BootTime, draw: Double
    ) {
        let wait: TimeSpan
        var backOff: TimeSpan?
        switch failure.kind {
        case .throttled where failure.wait != nil:
            // A server that has failed before is told apart from one that paces its clients: what it
            // asks for is too short for all whom it asks.
            let growth = BackOff.server(lifetime: lifetime)
            let more = last.map { growth.wait(after: $0, draw: draw) } ?? .zero
            wait = (failure.wait ?? .zero) + more
            backOff = growth.longest(last, wait: max(more, BackOff.start))
        case .refused:
            wait = RotationTiming.refusedRetry
        case .notNative:
            // Nobody could ever use what another attempt would bring.
            wait = BootTime.distantFuture - now
        case .keyringLocked, .keyringUnavailable, .successorUnstored, .storageFailed, .lockBusy,
            .exchangeFailed:
            wait = BackOff.local.wait(after: last, draw: draw)
            backOff = BackOff.local.longest(last, wait: wait)
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled:
            let growth = BackOff.server(lifetime: lifetime)
            wait = growth.wait(after: last, leisure: leisure, draw: draw)
            backOff = growth.longest(last, wait: wait, leisure: leisure)
        }
        self.init(failure: failure, until: now + wait, backOff: backOff)
    }
}
