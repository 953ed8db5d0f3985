internal import AgentCore

extension ServedProfile {
    /// A client that waits for the machine.
    struct Waiter {
        let client: ClientID
        var kind: Kind
        let deadline: BootTime

        /// Whether an exchange has ended since the client came.
        var sawAttempt = false

        enum Kind {
            case token(minimumValidity: TimeSpan?, asText: Bool)
            /// A new generation is wanted in place of this one, or (nil) of the one that is going
            /// to be read, if its number is `onlyIf` or that is nil.
            case rotation(of: Generation?, onlyIf: Int64?)
        }
    }

    /// Takes out the waiters that can be told something, and says what.
    func takeAnswered(at now: Moment) -> [(ClientID, Reply)] {
        guard !waiters.isEmpty else { return [] }
        return waiters.take { reply(to: &$0, at: now) }
    }

    /// Takes out the waiters whose deadline has come, and says what they are told.
    func takeLate(at now: Moment) -> [(ClientID, Reply)] {
        guard let next = waiters.nextDeadline, next <= now.boot else { return [] }
        return waiters.take { $0.deadline <= now.boot ? lastReply(to: $0, at: now) : nil }
    }

    /// Takes out all waiters, since nothing is started any more, and says what they are told: the
    /// token if it has a second left, what keeps it from being renewed, or that canopyd stops.
    func takeDismissed(at now: Moment) -> [(ClientID, Reply)] {
        waiters.take { waiter in
            if case .token(let validity, let asText) = waiter.kind {
                let verdict = machine.verdictAtDeadline(minimumValidity: validity, at: now)
                if let reply = reply(verdict, asText: asText, at: now) { return reply }
            }
            return Reply(Refusals.stopping(name))
        }
    }

    /// What a client is told now that asks for the present token; nil if it is to wait.
    func currentToken(
        minimumValidity: TimeSpan? = nil, asText: Bool = false, at now: Moment
    ) -> Reply? {
        let verdict = machine.verdict(minimumValidity: minimumValidity, at: now)
        if let reply = reply(verdict, asText: asText, at: now) { return reply }
        machine.validityWanted(at: now)
        return nil
    }

    private func reply(to waiter: inout Waiter, at now: Moment) -> Reply? {
        switch waiter.kind {
        case .token(let validity, let asText):
            return currentToken(minimumValidity: validity, asText: asText, at: now)
        case .rotation(let generation, let wanted):
            if generation == nil, case .resting = machine.phase {
                // Nothing had been read when it was asked for: what has been now is replaced.
                let present = machine.session?.position
                if wanted == nil || wanted == present?.number {
                    waiter.kind = .rotation(of: present, onlyIf: wanted)
                    return reply(toRotationOf: present, waiter, at: now)
                }
            }
            return reply(toRotationOf: generation, waiter, at: now)
        }
    }

    private func reply(
        toRotationOf generation: Generation?, _ waiter: Waiter, at now: Moment
    ) -> Reply? {
        switch machine.phase {
        case .unread, .exchanging:
            return nil
        case .ended(let reason):
            return Reply(Refusals.signInRequired(reason, name))
        case .paused(let pause):
            // Whoever holds the lock is at work on what was asked for.
            guard waiter.sawAttempt, pause.failure.kind != .lockBusy else { return nil }
            if machine.isUnstored, machine.session?.position != generation {
                // What fails is keeping what comes after the token that was asked for.
                return currentToken(at: now)
            }
            return Reply(
                Refusals.problem(
                    pause.failure, name, retryAfter: pause.until - now.boot, keptBy: keeper()))
        case .resting:
            // The exchange that was at work when it was asked for may have been one that only
            // looked. What may not rotate now, by floor or hold, is answered as it is.
            let isNew = machine.session?.position != generation
            guard isNew || !machine.rotationForced(at: now) else { return nil }
            return currentToken(at: now)
        }
    }

    private func lastReply(to waiter: Waiter, at now: Moment) -> Reply {
        switch waiter.kind {
        case .token(let validity, let asText):
            let verdict = machine.verdictAtDeadline(minimumValidity: validity, at: now)
            return reply(verdict, asText: asText, at: now) ?? Reply(Refusals.timeout(name))
        case .rotation:
            return Reply(Refusals.timeout(name))
        }
    }

    /// A verdict as a reply; nil for one that tells to wait.
    private func reply(
        _ verdict: RotationMachine.Verdict, asText: Bool, at now: Moment
    ) -> Reply? {
        switch verdict {
        case .token(let token): tokenReply(token, asText: asText, at: now)
        case .refused(let refusal): Reply(Refusals.problem(refusal, name, keptBy: keeper()))
        case .wait: nil
        }
    }
}
