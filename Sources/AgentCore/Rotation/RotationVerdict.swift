// What is told of a profile: what follows from the machine's state, and no more.

extension RotationMachine {
    /// What a client that asks for a token now is told.
    package enum Verdict: Equatable, Sendable {
        case token(AccessToken)
        case refused(Refusal)
        /// The exchange that runs, or is due, will tell.
        case wait
    }

    /// What a client is told that wants `minimumValidity`, or (nil) does not care.
    package func verdict(minimumValidity: TimeSpan?, at now: Moment) -> Verdict {
        if case .ended(let reason) = phase {
            return .refused(.signInRequired(reason))
        }
        if let access, let offer {
            if let minimumValidity, minimumValidity > attainable {
                return .refused(.validityAboveLifetime(attainable))
            }
            if offer.remaining(ifAtLeast: minimumValidity, at: now) != nil {
                return .token(access)
            }
            if minimumValidity == nil, case .paused = phase, offer.end.remaining(at: now) > .zero {
                // It cannot be renewed now, and its last seconds are good.
                return .token(access)
            }
        }
        switch phase {
        case .unread, .resting, .exchanging:
            return .wait
        case .paused(let pause):
            // The first to ask after a suspend must not hear of what failed before it.
            guard pause.until > now.boot else { return .wait }
            // Whoever holds the lock is at work on this very token, and what it brings is adopted.
            guard pause.failure.kind != .lockBusy else { return .wait }
            return .refused(
                .failed(
                    pause.failure, retryAfter: pause.until - now.boot, expired: expired(at: now)))
        case .ended(let reason):
            return .refused(.signInRequired(reason))
        }
    }

    /// What is handed out until the state changes; nil while there is nothing.
    ///
    /// A part of ``verdict(minimumValidity:at:)`` that asks for nothing but the time.
    package var offer: Offer? {
        if case .ended = phase { return nil }
        guard let life = access?.life, let end = life.end(under: boot) else { return nil }
        return Offer(end: end, standard: life.standardValidity, attainable: attainable)
    }

    /// For how long the token in hand has been over; nil if it is good, or there is none.
    private func expired(at now: Moment) -> TimeSpan? {
        guard let life = access?.life, life.remaining(at: now, boot: boot) <= .zero else {
            return nil
        }
        return .zero - life.remaining(at: now, boot: boot)
    }

    /// What a client is told whose deadline has come while it waited.
    package func verdictAtDeadline(minimumValidity: TimeSpan?, at now: Moment) -> Verdict {
        if minimumValidity == nil, let access, access.life.remaining(at: now, boot: boot) > .zero {
            return .token(access)
        }
        return verdict(minimumValidity: minimumValidity, at: now)
    }

    package func state(at now: Moment) -> ProfileState {
        let isGood = access.map { $0.life.remaining(at: now, boot: boot) > .zero } ?? false
        switch phase {
        case .unread:
            return isGood ? .active : .refreshing
        case .resting:
            if isGood { return deaths > 0 ? .degraded : .active }
            return mode == .onDemand ? .active : .refreshing
        case .exchanging(let exchange):
            if let failure = exchange.retrying {
                return RotationMachine.state(of: failure, isGood: isGood)
            }
            switch exchange.job {
            case .rotate where slot == .empty: return .refreshing
            case .signIn, .secondFactor: return isGood ? .active : .refreshing
            case .rotate, .load, .signOut, .identity, .sessions, .revokeSession, .examine:
                // Looking, or storing once more, changes nothing yet.
                return RotationMachine.state(of: exchange.before, isGood: isGood)
            }
        case .paused(let pause):
            return RotationMachine.state(of: pause.failure, isGood: isGood)
        case .ended:
            return .signInRequired
        }
    }

    static func state(of standstill: Standstill, isGood: Bool) -> ProfileState {
        switch standstill {
        case .unread: isGood ? .active : .refreshing
        case .resting: isGood ? .active : .refreshing
        case .paused(let pause): state(of: pause.failure, isGood: isGood)
        case .ended: .signInRequired
        }
    }

    static func state(of failure: Failure, isGood: Bool) -> ProfileState {
        switch failure.kind {
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .lockBusy:
            isGood ? .degraded : .offline
        case .successorUnstored where failure.cause == .storageFailed:
            isGood ? .degraded : .storageFailed
        case .successorUnstored: isGood ? .degraded : .keyringUnavailable
        case .refused, .notNative: .refused
        case .keyringLocked: .keyringLocked
        case .keyringUnavailable: .keyringUnavailable
        case .storageFailed, .exchangeFailed: .storageFailed
        }
    }

    /// What the next exchange waits for to go away, or the one that runs has met before; nil for
    /// nothing.
    package var obstacle: Failure? {
        switch phase {
        case .paused(let pause): return pause.failure
        case .exchanging(let exchange):
            if let failure = exchange.retrying { return failure }
            guard case .paused(let pause) = exchange.before else { return nil }
            return pause.failure
        case .unread, .resting, .ended: return nil
        }
    }

    /// Whether nothing is signed in, and nothing was lost: the profile does not exist for clients.
    package var isUnknown: Bool {
        switch phase {
        case .ended(.signedOut): true
        case .exchanging(let exchange): exchange.before == .ended(.signedOut)
        case .ended, .unread, .resting, .paused: false
        }
    }
}
