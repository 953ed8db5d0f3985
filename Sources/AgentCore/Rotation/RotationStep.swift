// When an exchange is started: what follows from the machine's state, and no more.

extension RotationMachine {
    /// What is to be done now.
    package enum Step: Equatable, Sendable {
        case nothing
        /// Read keyring and state directory.
        case load
        /// Rotate if it may be; `mayPresent` false stores what the slot holds.
        case rotate(mayPresent: Bool)
    }

    package func step(at now: BootTime) -> Step {
        switch phase {
        case .unread:
            return slot == .empty ? .load : .rotate(mayPresent: false)
        case .resting(let due):
            if due <= now { return .rotate(mayPresent: !isUnstored) }
            if case .kept(let until, _) = slot, until <= now { return .rotate(mayPresent: false) }
            return .nothing
        case .paused(let pause):
            guard pause.until <= now else { return .nothing }
            // Read alone, a keyring that has lost what the slot holds would seem to have been reset.
            guard slot == .empty else { return .rotate(mayPresent: false) }
            // Where nothing is to be rotated, what failed was reading: one load reads every profile,
            // and a keyring that has just come is not overrun.
            guard session != nil, isRotationDue(after: pause, at: now) else { return .load }
            return .rotate(mayPresent: true)
        case .exchanging, .ended:
            return .nothing
        }
    }

    /// Whether the exchange of a token that may be spent has died, and is to be repeated at once: a
    /// question to the server, which may take a minute, must not come between.
    package var isRepeating: Bool {
        guard deaths > 0 else { return false }
        switch phase {
        case .resting: return true
        case .paused(let pause): return pause.backOff == nil
        case .unread, .exchanging, .ended: return false
        }
    }

    /// Whether the pause ends in a rotation, and not only in another look at the store: a keyring
    /// that was locked and unlocked is no reason to spend a refresh token ahead of its time.
    private func isRotationDue(after pause: Pause, at now: BootTime) -> Bool {
        switch pause.failure.kind {
        case .successorUnstored:
            return false
        case .keyringLocked, .keyringUnavailable, .storageFailed:
            guard access != nil, let rotationPoint else { return true }
            return rotationPoint <= now
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
            .notNative, .lockBusy, .exchangeFailed:
            return true
        }
    }

    /// When ``step(at:)`` will ask for something by itself; nil for never.
    package var wakeUp: BootTime? {
        switch phase {
        case .unread: return BootTime(nanoseconds: 0)
        case .resting(let due):
            if case .kept(let until, _) = slot { return min(due, until) }
            return due
        case .paused(let pause): return pause.until
        case .exchanging, .ended: return nil
        }
    }

    func nextRotation(
        of life: AccessTokenLife, isRecovery: Bool, draw: Double
    ) -> BootTime {
        switch mode {
        case .ahead:
            life.sent.moment.boot
                + RotationTiming.rotationPoint(
                    lifetime: life.lifetime, isRecovery: isRecovery, draw: draw)
        case .onDemand:
            life.sent.moment.boot + RotationTiming.onDemandKeepAlive
        }
    }

    /// When a session without a usable access token rotates.
    func idleRotation(at now: Moment) -> BootTime {
        switch mode {
        case .ahead:
            return now.boot
        case .onDemand:
            guard let session else { return now.boot }
            let age =
                session.lastRotation?.age(at: now, boot: boot)
                ?? max(.zero, now.wall - session.signedInAt)
            return now.boot + max(.zero, RotationTiming.onDemandKeepAlive - age)
        }
    }

    func earliestRotation(at now: Moment) -> BootTime {
        guard let session else { return now.boot }
        var wait = session.notBefore?.remaining(at: now, boot: boot) ?? .zero
        if let last = session.lastRotation {
            let floor = RotationTiming.floor(lifetime: session.access?.lifetime)
            wait = max(wait, floor - last.age(at: now, boot: boot))
        }
        if case .kept(let until, let isRewritten) = slot {
            wait = max(wait, until - now.boot + (isRewritten ? .zero : RotationTiming.lateWrite))
        }
        return now.boot + wait
    }

    /// For how long the token in hand still serves, where its rotation was due by its age.
    ///
    /// A rotation before that is one that somebody wants, who is not served by the token.
    func leisure(at now: Moment) -> TimeSpan {
        guard let access, let rotationPoint, rotationPoint <= now.boot else { return .zero }
        let life = access.life
        return max(.zero, life.remaining(at: now, boot: boot) - life.standardValidity)
    }
}
