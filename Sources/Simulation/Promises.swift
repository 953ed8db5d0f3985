internal import AgentCore
internal import SandboxRules

/// The invariants of ROTATION, I1 to I6, as far as a state shows them: asked after every step.
///
/// The others are asked where something is done: see ``checkPresenting(_:of:from:by:)`` and
/// ``SimulatedExchange``.
extension Episode {
    func checkPromises() {
        guard violation == nil else { return }
        checkTreasure()
        checkOffer()
    }

    /// I5: the newest token of a session that is alive is in the keyring, in a slot, or in the
    /// memory of an exchange.
    private func checkTreasure() {
        guard let treasure, !isHeld(treasure) else { return }
        let fate = server.fates[treasure]
        guard server.isAlive(fate.family, at: time),
            Int(server.ledger.currentToken(of: fate.family).number) == treasure,
            !isDisturbed
        else {
            self.treasure = nil
            return
        }
        if let signIn = families.first(where: { $0.value == fate.family })?.key, isOver(signIn) {
            self.treasure = nil
            return
        }
        violate("I5: the newest refresh token of a session that is alive is nowhere any more")
    }

    private func isHeld(_ token: Int) -> Bool {
        home.keyring.token == token || home.slot.token == token || home.otherSlot.token == token
            || running.contains {
                ($0.received == token || $0.slot.token == token) && !$0.isKilled
            }
    }

    /// The keyring holds what was written into it: a new sign-in's token is the newest then.
    func noteTreasure() {
        guard let session = home.keyring.live, let token = home.keyring.token else { return }
        noteSuccessor(session, .stored)
        if let treasure, server.fates[treasure].family == server.fates[token].family { return }
        treasure = token
    }

    /// What the newest token was in has been lost: no promise covers it any more.
    func releaseTreasure() {
        takenAt = time
        if let treasure, !isHeld(treasure) { self.treasure = nil }
    }

    /// I6: whatever a client would be handed out now is good by the server's clock.
    private func checkOffer() {
        guard let agent, agent.machine.access != nil,
            case .token(let token) = agent.machine.verdict(minimumValidity: nil, at: now)
        else { return }
        let left = Answers.expiry(of: token.value) - SimulatedServer.now(time)
        if left <= .zero { violate("I6: an expired access token would be handed out") }
    }

    /// Asked before a request with a refresh token leaves.
    func checkPresenting(
        _ token: Int, of signIn: SignInID, from home: SimulatedHome, by process: SimulatedProcess
    ) {
        let fate = server.fates[token]
        log("present token \(token), generation \(fate.generation)")
        guard home === self.home else {
            if !fate.isOfCopy { violate("I3: a copied home presented a token") }
            return
        }
        if isOver(signIn), !isDisturbed { violate("a session that is over was presented") }
        if fate.family.number < highest.count, fate.generation < highest[fate.family.number] {
            violate("I3: an older token was presented after a newer one")
        }
        if (home.syncedState?.signIns.mark(of: signIn) ?? -1) < fate.generation, !isDisturbed {
            violate("I3: a token was presented before its mark was safe from a power cut")
        }
        if fate.generation > 0, !isDisturbed, home.keyring.writesAtOnce || !lostItsSlot(token) {
            let stored = home.keyring.writesAtOnce ? home.keyring.disk : home.keyring.live
            if stored.map({ Answers.number($0.refreshToken) }) != token {
                violate("I2: a token was presented before it was safely in the keyring")
            }
        }
        checkPatience(token, fate)
    }

    private func checkPatience(_ token: Int, _ fate: SimulatedServer.TokenFate) {
        let lateStore = RotationTiming.lateStoreHold.nanoseconds
        if !home.keyring.writesAtOnce, fate.generation > 0, fate.storedInBoot == bootNumber,
            time - fate.storedAt < lateStore - Episode.storeTime, !isDisturbed
        {
            violate("I2: a token was presented before a late keyring can have written it")
        }
        if time < fate.notBefore { violate("a successor was presented within the hold") }
        if fate.receivedInBoot == bootNumber {
            let floor = RotationTiming.floor(lifetime: .seconds(server.lifetime)).nanoseconds
            if !fate.wasSent, fate.hasAccessToken, time - fate.receivedAt < floor {
                violate("two rotations came within the floor")
            }
        }
        if time < toldUntil, fate.family == toldFamily {
            violate("the server's Retry-After was not obeyed")
        }
    }

    /// What a call to the keyring takes after the hold was reckoned.
    private static let storeTime: Int64 = 500_000_000

    /// What an outcome promises.
    func note(_ outcome: ExchangeOutcome, _ process: SimulatedProcess) {
        switch outcome {
        case .signInRequired(let reason, _, _) where reason.isFinal:
            guard let current = home.signIns?.current else { return }
            over.insert(current)
            if reason != .signedOut, let family = families[current], !isDisturbed,
                !saidDead.contains(family.number)
            {
                violate("I5: \(reason.rawValue) was said without the server's word")
            }
        case .signedOut:
            if case .signOut(let isLocal) = process.job {
                figures.signOuts += 1
                if !isLocal, let family = process.target, server.isAlive(family, at: time),
                    !isDisturbed
                {
                    violate("a sign-out was reported, and the session is alive on the server")
                }
                for death in home.signIns?.dead ?? [] { over.insert(death.signIn) }
            }
        case .session(let report):
            if case .signIn = process.job {
                figures.signIns += 1
                toldSignIns.insert(report.header.signIn)
                wasSignedInAlone = process.agent == nil
                // What was done to the home meanwhile may have been done to the new session.
                if disturbedAt < process.readyAt { isDisturbed = false }
            }
            if report.storeFailure == nil, let session = home.keyring.live,
                session.header.position != report.header.position, !isDisturbed,
                !server.fates[Answers.number(session.refreshToken)].lostByLateKeyring
            {
                violate("a session was reported as stored that the keyring does not hold")
            }
        case .signInRequired, .tooEarly, .failed, .rejected, .challenged, .document,
            .tokenRefused:
            break
        }
    }

    /// The session that the user has, if it is known and alive: the one in the keyring, or a later one that is in the
    /// slot alone.
    func liveFamily(_ slot: SimulatedSlot) -> SimulatedServer.Family? {
        guard let session = home.keyring.live, let signIns = home.signIns,
            signIns.knowsAlive(session.header.signIn)
        else { return nil }
        var family = server.fates[Answers.number(session.refreshToken)].family
        if case .session(let kept) = slot.contents,
            signIns.isNewer(kept.header.signIn, than: session.header.signIn)
        {
            family = server.fates[Answers.number(kept.refreshToken)].family
        }
        return server.isAlive(family, at: time) ? family : nil
    }

    func isOver(_ signIn: SignInID) -> Bool {
        over.contains(signIn) || home.signIns?.death(of: signIn) != nil
    }

    func noteSuccessor(_ session: StoredSession, _ progress: SimulatedServer.TokenFate.Progress) {
        let token = Answers.number(session.refreshToken)
        families[session.header.signIn] = server.fates[token].family
        server.noteSuccessor(token, progress)
    }

    /// `time` is when the call began: what is told of a suspend within one is no better.
    func noteStored(_ session: StoredSession, at time: Int64) {
        let bootNumber = bootNumber
        server.note(Answers.number(session.refreshToken)) {
            $0.storedAt = time
            $0.storedInBoot = bootNumber
        }
    }
}
