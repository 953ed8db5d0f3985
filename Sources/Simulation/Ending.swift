internal import AgentCore
internal import SandboxRules

/// The end of an episode: the faults stop, time passes, and all must be well.
extension Episode {
    func endQuietly() {
        guard violation == nil else { return }
        log("the faults stop")
        isCalm = true
        home.isDiskFull = false
        home.isStateUnreadable = false
        home.slot.isUnwritable = false
        recoverKeyring()
        home.keyring.dropsWrites = false
        networkDownUntil = 0
        spell = nil
        lastTrouble = max(lastTrouble, time)
        server.ledger.setActive(server.identity, true)
        agent?.keyringChanged()
        agent?.surroundingsChanged()
        advance(to: time + 7200_000_000_000)
        agent?.keyringChanged()
        agent?.surroundingsChanged()
        let before = home.keyring.live
        advance(to: time + (1200 + 3 * server.lifetime) * 1_000_000_000)
        guard violation == nil else { return }
        guard let agent else { return violate("canopyd did not come back") }
        // One that had ended is looked at again now and then: how it ends is known in a moment.
        if agent.machine.session == nil, !agent.isIdle { advance(to: time + 1_000_000_000) }
        judge(agent, before)
        guard violation == nil, let agent = self.agent else { return }
        if case .ended = agent.machine.phase { signInAgain(agent) }
    }

    private func judge(_ agent: SimulatedAgent, _ before: StoredSession?) {
        let identity = server.identity
        if server.ledger.identityRevocations(of: identity) != figures.incidents {
            violate("an identity-wide revocation was not counted")
        }
        if case .ended(let reason) = agent.machine.phase, reason.isFinal, wasSignedInAlone {
            return judgeRestart()
        }
        if case .ended(let reason) = agent.machine.phase { return judgeEnd(reason) }
        guard let session = home.keyring.live else {
            // One that had ended is looked at again, of which nobody knows yet how it ends.
            if agent.machine.session == nil, case .exchanging(let exchange) = agent.machine.phase,
                exchange.job == .load
            {
                return
            }
            return violate("canopyd waits for something, and the keyring holds no session")
        }
        let family = server.fates[Answers.number(session.refreshToken)].family
        guard server.isAlive(family, at: time) else {
            // It may be that nobody has asked since the session ended.
            if mode == .onDemand { return count(ending: family) }
            return violate("a session is over on the server and canopyd has not noticed")
        }
        guard isServed(agent) else {
            return violate("the session is alive, the faults are over, and no token is served")
        }
        if mode == .ahead, before?.header.position == session.header.position {
            return violate("the session is alive, the faults are over, and it does not rotate")
        }
        figures.survived += 1
    }

    /// A sign-in whose canopyd was killed ends after the next one has looked: a further start finds
    /// its session.
    private func judgeRestart() {
        wasSignedInAlone = false
        killAgent()
        advance(to: time + 60_000_000_000)
        guard violation == nil, let agent else { return }
        judge(agent, nil)
    }

    /// Whether a client gets a token now.
    private func isServed(_ agent: SimulatedAgent) -> Bool {
        let before = figures.tokensServed
        agent.wantToken(minimumValidity: nil, timeout: 30_000_000_000)
        advance(to: time + 30_000_000_000)
        return figures.tokensServed > before
    }

    private func judgeEnd(_ reason: SignInReason) {
        switch reason {
        case .signedOut, .revokedOrExpired, .rotationLost:
            let current = home.signIns?.current
            if let current, let family = families[current] { return count(ending: family) }
            figures.endedByRight += 1
        case .restoredCopy where hasFallenBack:
            lose(.slotLostUnstored)
        case .restoredCopy, .keyringReset, .otherMachine:
            guard isDisturbed else {
                return violate(
                    "I5: \(reason.rawValue) was said, and nothing was restored or reset")
            }
            figures.refusedByDesign += 1
        }
    }

    /// Whether a late keyring has the session again of before a rotation: the slot was lost that held
    /// the successor, and then the machine, with what the keyring had not written.
    ///
    /// Nothing tells that from a copy that was put back.
    private var hasFallenBack: Bool {
        guard !home.keyring.writesAtOnce, !isDisturbed, let token = home.keyring.token,
            let item = home.keyring.live?.header
        else { return false }
        let mark = max(
            home.signIns?.mark(of: item.signIn) ?? -1, home.runtimeMarks[item.signIn] ?? -1)
        let fate = server.fates[token]
        return mark > item.generation && fate.lostItsSlot
            && (fate.lostByPowerCut || fate.lostByLateKeyring)
    }

    private func count(ending family: FamilyID) {
        switch server.ledger.ending(of: family) {
        case .loggedOut, .revoked: figures.endedByRight += 1
        case .replay, .theft: break  // Counted as a loss, or a violation already.
        case nil:
            guard server.isExpired(family, at: time) || isDisturbed else {
                return violate("I5: the session was ended here and is alive on the server")
            }
        }
    }

    private func signInAgain(_ agent: SimulatedAgent) {
        agent.wantSignIn()
        advance(to: time + 120_000_000_000)
        guard violation == nil, !isServed(agent) else { return }
        violate("a sign-in without faults brought no token")
    }
}
