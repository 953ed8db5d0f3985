/// Decides, for one profile, when an exchange is started and what clients are told.
///
/// A value: it reads no clock, does no I/O and draws no random numbers. Events change its state;
/// ``step(at:)``, ``wakeUp`` and ``verdict(minimumValidity:at:)`` follow from the state. Whoever
/// owns it performs the step and reports its end; one exchange at a time, because there is one
/// step at a time.
package struct RotationMachine: Sendable {
    package private(set) var phase: Phase = .unread
    package private(set) var session: SessionHeader?
    package private(set) var access: AccessToken?

    /// The last failure that no success has followed, and when it was.
    package private(set) var lastFailure: (failure: Failure, at: WallTime)?

    /// When the access token in hand is to be rotated; drawn once per token.
    package private(set) var rotationPoint: BootTime?

    /// The validity that a fresh token has in a client's hands: what the last one that came had left,
    /// or the whole lifetime while none has.
    private(set) var attainable: TimeSpan = .zero

    package private(set) var slot = Slot.empty

    package private(set) var mode: Mode

    let boot: BootID
    /// Deaths of exchanges in a row, for quick repetitions within the server's grace.
    private(set) var deaths = 0
    /// The wait that the next one after them grows from, once they are backed off from.
    private var deathBackOff: TimeSpan?
    /// The end of the last exchange, so that nobody can make us spin.
    private var lastEnd: BootTime?

    /// `holdsSuccessor` for a slot that an earlier canopyd left full: it is settled before anything
    /// else is done.
    package init(boot: BootID, mode: Mode = .ahead, holdsSuccessor: Bool = false) {
        self.boot = boot
        self.mode = mode
        slot = holdsSuccessor ? .unstored : .empty
    }

    // MARK: What changes the state

    /// Nothing is signed in yet: there is nothing to read.
    package mutating func becomeUnknown() {
        guard phase == .unread else { preconditionFailure("\(#function) after it was read") }
        phase = .ended(.signedOut)
    }

    /// The configuration names another mode, which counts for the token in hand too.
    package mutating func modeChanged(to mode: Mode, at now: Moment, draw: Double) {
        guard mode != self.mode else { return }
        self.mode = mode
        if let access {
            rotationPoint = nextRotation(of: access.life, isRecovery: false, draw: draw)
        }
        // One that died is repeated within the server's grace, whatever the mode.
        guard case .resting = phase, deaths == 0 else { return }
        phase = .resting(due: rotationPoint ?? idleRotation(at: now))
    }

    /// An exchange was started; there is none running.
    package mutating func exchangeBegan(_ job: JobKind, at now: BootTime) {
        let before: Standstill
        switch phase {
        case .unread: before = .unread
        case .resting(let due): before = .resting(due: due)
        case .paused(let pause): before = .paused(pause)
        case .ended(let reason): before = .ended(reason)
        case .exchanging: preconditionFailure("a second exchange of one profile")
        }
        phase = .exchanging(Exchange(job: job, began: now, before: before))
    }

    package mutating func exchangeProgressed(_ progress: ExchangeProgress, at now: Moment) {
        guard case .exchanging(var exchange) = phase else {
            return  // It was declared dead before its last words were read.
        }
        switch progress {
        case .presenting:
            exchange.isPresenting = true
            // Before it presents, a rotation has emptied a slot that was kept, or what it holds is known
            // to be stored. A sign-in or a sign-out has not, and leaves it so where it fails.
            if exchange.job == .rotate, case .kept = slot { slot = .empty }
        case .retrying(let failure):
            let told = isUnstored ? failure.asOfUnstored : failure
            exchange.retrying = told
            lastFailure = (told, now.wall)
        }
        phase = .exchanging(exchange)
    }

    /// The exchange has reported its end.
    ///
    /// `holdsSuccessor` where it has left the slot full.
    package mutating func exchangeEnded(
        _ outcome: ExchangeOutcome, holdsSuccessor: Bool = false, at now: Moment, draw: Double
    ) {
        guard case .exchanging(let exchange) = phase else {
            return  // It was declared dead before its report was read.
        }
        defer { if exchange.sawChange { surroundingsChanged(at: now) } }
        lastEnd = now.boot
        if !exchange.leavesRepetition(outcome) {
            deaths = 0
            deathBackOff = nil
        }
        switch outcome {
        case .session(let report):
            take(report, from: exchange.job, at: now, draw: draw)
        case .tooEarly(let report, let wait):
            take(report, from: exchange.job, at: now, draw: draw)
            switch phase {
            case .resting(let due):
                phase = .resting(due: max(due, now.boot + wait))
            case .paused(let pause):
                phase = .paused(pause.ending(at: max(pause.until, now.boot + wait)))
            case .unread, .exchanging, .ended:
                break
            }
        case .failed(let failure):
            ended(exchange, failure, holdsSuccessor, at: now, draw: draw)
        case .signInRequired(let reason, let words, _):
            end(reason)
            lastFailure = words.isEmpty ? nil : (Failure(.refused, words), now.wall)
        case .signedOut:
            end(.signedOut)
            lastFailure = nil
        case .rejected, .challenged, .document, .tokenRefused:
            resume(exchange.before)
        }
    }

    /// The exchange ended without a report: killed, crashed, or never started.
    ///
    /// `holdsSuccessor` where it has left the slot full.
    package mutating func exchangeDied(
        _ detail: String, holdsSuccessor: Bool = false, at now: Moment, draw: Double
    ) {
        guard case .exchanging(let exchange) = phase else {
            return  // Its report came first.
        }
        defer { if exchange.sawChange { surroundingsChanged(at: now) } }
        lastEnd = now.boot
        // Not of a question, which does not touch the slot: what is kept is still known to be stored.
        if holdsSuccessor, !exchange.job.isQuestion { slot = .unstored }
        let failure = exchange.death(detail)
        switch exchange.job {
        case .rotate, .load:
            // The token may be spent, and the server's grace is short: at once, a few times.
            guard deaths < RotationTiming.quickRetries.count else {
                pause(failure, exchange, orAfter: deathBackOff, at: now, draw: draw)
                if case .paused(let pause) = phase { deathBackOff = pause.backOff }
                return
            }
            lastFailure = (failure, now.wall)
            let wait = RotationTiming.quickRetries[deaths]
            deaths += 1
            if session == nil {
                phase = .paused(Pause(failure: failure, until: now.boot + wait, backOff: nil))
            } else {
                phase = .resting(due: now.boot + wait)
            }
        case .signIn, .secondFactor, .signOut:
            // What it did to the store has to be read again.
            lastFailure = (failure, now.wall)
            phase = .unread
        case .identity, .sessions, .revokeSession, .examine:
            resume(exchange.before)
        }
    }

    /// A client waits for more validity than the token in hand has: rotate as soon as it may be.
    package mutating func validityWanted(at now: Moment) {
        guard case .resting(let due) = phase, !isRepeating else { return }
        phase = .resting(due: min(due, max(now.boot, earliestRotation(at: now))))
    }

    /// Somebody wants a new generation.
    ///
    /// Returns false where the answer is the present state: a rotation that would come too early, a
    /// wait that the server asked for, an end.
    package mutating func rotationForced(at now: Moment) -> Bool {
        switch phase {
        case .unread, .exchanging:
            return true
        case .resting where isRepeating:
            // The request of the exchange that died may still be at work on the server: it is left
            // the time that it is left without a client.
            return true
        case .resting:
            guard earliestRotation(at: now) <= now.boot else { return false }
            phase = .resting(due: now.boot)
            return true
        case .paused(let pause) where pause.failure.kind == .lockBusy:
            // A rotation is going on, though not ours.
            wakeSoon(pause, at: now)
            return true
        case .paused(let pause):
            guard pause.failure.kind != .throttled || pause.failure.wait == nil,
                earliestRotation(at: now) <= now.boot,
                lastEnd.map({ now.boot - $0 >= BackOff.start }) ?? true
            else { return false }
            rotationPoint = rotationPoint.map { min($0, now.boot) }
            phase = .paused(pause.ending(at: now.boot))
            return true
        case .ended(let reason):
            guard !reason.isFinal, session == nil else { return false }
            phase = .unread
            return true
        }
    }

    /// The machine woke up.
    package mutating func resumed(at now: Moment) {
        if case .kept(_, let isRewritten) = slot {
            // The clock by which a late keyring writes has stood still.
            slot = .kept(until: now.boot + RotationTiming.lateWrite, isRewritten: isRewritten)
        }
        surroundingsChanged(at: now)
    }

    /// The machine woke up, or the network changed: what failed for want of it is tried at once.
    package mutating func surroundingsChanged(at now: Moment) {
        if case .exchanging(var exchange) = phase {
            exchange.sawChange = true
            phase = .exchanging(exchange)
        }
        guard case .paused(let pause) = phase else { return }
        switch pause.failure.kind {
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .lockBusy:
            wakeSoon(pause, at: now)
        case .throttled, .refused, .notNative, .keyringLocked, .keyringUnavailable,
            .storageFailed, .successorUnstored, .exchangeFailed:
            break
        }
    }

    /// Ends the pause now, but a second after the last exchange at the soonest: a network that comes
    /// and goes each moment, or an eager client, must not make us hammer.
    private mutating func wakeSoon(_ pause: Pause, at now: Moment) {
        let soonest = lastEnd.map { $0 + BackOff.start } ?? now.boot
        phase = .paused(pause.ending(at: min(pause.until, max(now.boot, soonest))))
    }

    /// The keyring was unlocked, came, or changed.
    package mutating func keyringChanged(at now: Moment) {
        switch phase {
        case .paused(let pause):
            switch pause.failure.kind {
            case .keyringLocked, .keyringUnavailable, .successorUnstored, .storageFailed:
                phase = .paused(Pause(failure: pause.failure, until: now.boot, backOff: nil))
            case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
                .notNative, .lockBusy, .exchangeFailed:
                break
            }
        case .ended(let reason) where !reason.isFinal:
            phase = .unread
        case .ended, .unread, .resting, .exchanging:
            break
        }
    }

    /// Something happened to the keyring, and only reading it tells whether it can still be used.
    package mutating func keyringDoubted() {
        guard case .resting = phase else { return }
        phase = .unread
    }

    /// The keyring was locked or went away: nothing can rotate until it is back.
    package mutating func keyringLost(_ failure: Failure, at now: Moment) {
        switch phase {
        case .resting:
            pause(failure, after: nil, at: now, draw: 0)
        case .paused, .unread, .exchanging, .ended:
            break  // An exchange finds out by itself; the others wait already.
        }
    }

    // MARK: Transitions

    private mutating func take(
        _ report: SessionReport, from job: JobKind, at now: Moment, draw: Double
    ) {
        let isRotated = job == .rotate && session?.position != report.header.position
        let isNew = session?.position != report.header.position || access == nil
        session = report.header
        if let token = report.accessToken, token.life.remaining(at: now, boot: boot) > .zero {
            if isNew || access != token {
                rotationPoint = nextRotation(
                    of: token.life, isRecovery: isRotated && isBackingOff, draw: draw)
            }
            let left = token.life.remaining(at: now, boot: boot)
            if isRotated || job == .signIn || job == .secondFactor {
                attainable = left
            } else if attainable == .zero {
                attainable = token.life.lifetime
            }
            access = token
        } else if isNew {
            access = nil
            rotationPoint = nil
        }
        if let failure = report.storeFailure {
            slot = .unstored
            let unstored = Failure(
                .successorUnstored, failure.detail, cause: failure.kind,
                remedy: failure.remedyOfUnstored)
            return pause(
                unstored, after: backOff(of: .successorUnstored), at: now, draw: draw)
        }
        slot =
            report.slotKeptFor.map {
                .kept(until: now.boot + $0, isRewritten: report.isSlotRewritten)
            } ?? .empty
        // A token that is over when it comes would be replaced without end.
        let isUsable = report.accessToken != nil && !isRotated
        guard access != nil || report.header.lastRotation == nil || isUsable else {
            let words = report.header.access.flatMap(ClockDisagreement.init)?.description
            let failure = Failure(
                .serverError, words ?? "the server's answer had no usable access token")
            return pause(failure, after: backOff(of: .serverError), at: now, draw: draw)
        }
        lastFailure = nil
        if report.isAmbiguous {
            // It may have been presented by an exchange that died: the grace is short.
            phase = .resting(due: now.boot)
        } else {
            phase = .resting(due: rotationPoint ?? idleRotation(at: now))
        }
    }

    private mutating func ended(
        _ exchange: Exchange, _ failure: Failure, _ holdsSuccessor: Bool, at now: Moment,
        draw: Double
    ) {
        switch exchange.job {
        case .load, .rotate:
            pause(failure, exchange, at: now, draw: draw)
        case .signOut where exchange.isPresenting && holdsSuccessor:
            // It has rotated before it failed, and whether the keyring took what is in the slot it does
            // not say.
            slot = .unstored
            phase = .unread
        case .signOut:
            resume(exchange.before)
        case .signIn, .secondFactor, .identity, .sessions, .revokeSession, .examine:
            resume(exchange.before)
        }
    }

    private mutating func resume(_ standstill: Standstill) {
        switch standstill {
        case .unread: phase = .unread
        case .resting(let due): phase = .resting(due: due)
        case .paused(let pause): phase = .paused(pause)
        case .ended(let reason): phase = .ended(reason)
        }
    }

    private mutating func pause(
        _ failure: Failure, _ exchange: Exchange, orAfter other: TimeSpan? = nil, at now: Moment,
        draw: Double
    ) {
        var last = other
        if case .paused(let pause) = exchange.before { last = pause.backOff }
        pause(failure, after: last, at: now, draw: draw)
    }

    /// The wait before the exchange that runs, if the same was its cause.
    func backOff(of kind: Failure.Kind) -> TimeSpan? {
        guard case .exchanging(let exchange) = phase, case .paused(let pause) = exchange.before,
            pause.failure.kind == kind
        else { return nil }
        return pause.backOff
    }

    /// Whether the exchange that runs follows one that failed, and backed off.
    private var isBackingOff: Bool {
        guard case .exchanging(let exchange) = phase, case .paused(let pause) = exchange.before
        else { return false }
        return pause.backOff != nil
    }

    private mutating func pause(
        _ failure: Failure, after last: TimeSpan?, at now: Moment, draw: Double
    ) {
        lastFailure = (failure, now.wall)
        phase = .paused(
            Pause(
                of: failure, after: last, lifetime: session?.access?.lifetime,
                leisure: leisure(at: now), at: now.boot, draw: draw))
    }

    private mutating func end(_ reason: SignInReason) {
        access = nil
        session = nil
        rotationPoint = nil
        slot = .empty
        phase = .ended(reason)
    }
}
