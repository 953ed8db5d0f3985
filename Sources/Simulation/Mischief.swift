internal import AgentCore
internal import SandboxRules

/// What goes wrong, and what that does.
extension Episode {
    /// Whether a fault comes now that comes once in `count` times.
    func isFault(_ fault: Fault, in count: Int) -> Bool {
        guard !isCalm, random.isOne(in: count) else { return false }
        figures.faults[fault.rawValue] += 1
        lastTrouble = max(lastTrouble, time + BackOff.local.ceiling.nanoseconds)
        if fault == .keyringCallFailed { toldUntil = 0 }
        return true
    }

    /// What a request gets in place of its answer; nil for its answer.
    func answerFault() -> Fault? {
        guard !isCalm else { return nil }
        if let spell, spell.until > time {
            lastTrouble = max(lastTrouble, time)
            return spell.fault
        }
        guard random.isOne(in: rates.request), !rates.answers.isEmpty else { return nil }
        let fault = rates.answers[random.below(rates.answers.count)]
        lastTrouble = max(lastTrouble, time)
        figures.faults[fault.rawValue] += 1
        log("fault: \(fault)")
        return fault
    }

    /// One of the theme's events happens.
    func happen() {
        guard !isOff, !rates.events.isEmpty else { return }
        let fault = rates.events[random.below(rates.events.count)]
        figures.faults[fault.rawValue] += 1
        log("fault: \(fault)")
        touch()
        lastTrouble = max(lastTrouble, time)
        toldUntil = 0
        switch fault {
        case .exchangeKilled: killExchange()
        case .agentKilled: killAgent()
        case .bothKilled:
            killAgent()
            killExchange()
        case .stopped: stop()
        case .replaced: replaceAgent()
        case .suspended: suspend()
        case .rebooted:
            agent?.stop()
            after(1_000_000_000, .poweringOff(since: time))
        case .powerCut: cutPower()
        case .clockStepped: stepClock()
        case .modeChanged:
            mode = mode == .ahead ? .onDemand : .ahead
            agent?.modeChanged(to: mode)
        case .networkDown:
            networkDownUntil = time + random.time(1000, 400_000)
            after(networkDownUntil - time + random.time(0, 500), .networkNews)
        case .portalSpell, .outageSpell, .throttlingSpell: cast(fault)
        case .sessionRevoked: revoke()
        case .identityRevoked:
            if random.isOne(in: 8) { server.ledger.revokeAll(of: server.identity) }
        case .identityInactive:
            server.ledger.setActive(server.identity, false)
            after(random.time(1000, 1_000_000), .identityMended)
        case .keyringLocked: breakKeyring(.locked)
        case .keyringGone: breakKeyring(.gone)
        case .keyringHangs: breakKeyring(.hanging)
        case .keyringKilled: killKeyring()
        case .keyringDropsWrites:
            home.keyring.dropsWrites = true
            after(random.time(10, 60_000), .keyringMended)
        case .slotUnwritable:
            home.slot.isUnwritable = true
            after(random.time(10, 60_000), .slotMended)
        case .diskFull:
            home.isDiskFull = true
            after(random.time(10, 300_000), .stateMended)
        case .stateUnreadable:
            home.isStateUnreadable = true
            after(random.time(10, 300_000), .stateMended)
        case .keyringReset: disturb { home.keyring.replace(nil) }
        case .keyringRestored, .homeRestored, .filesRestored: restore(fault)
        case .stateDeleted:
            disturb {
                home.replaceState(nil, isCopy: false)
                home.anchor = nil
            }
        case .homeCopied: copyHome()
        case .requestLost, .answerLost, .answerCut, .requestQueued, .portal, .serverError,
            .serverErrorAfterRotation, .throttled, .unavailable, .answerWithoutAccessToken,
            .accessTokenRefused, .keyringCallFailed, .emptyItemLeft, .stateCallFailed:
            preconditionFailure("a fault of a call happened by itself")
        }
    }

    // MARK: Processes and machine

    private func killExchange() {
        if let process = running.last ?? waiting.last { kill(process) }
    }

    func killAgent() {
        guard agent != nil else { return }
        // What runs goes on alone; what waits to be run has been started, too.
        for process in running + waiting { process.agent = nil }
        agent = nil
        after(random.time(100, 5000), .agentStarts)
    }

    /// Only what the keyring has in its file is left in a slot: no exchange of another canopyd looks there.
    private func replaceAgent() {
        guard keepsDescriptors, !isStopped, agent != nil, running.isEmpty, waiting.isEmpty else {
            return
        }
        home.keyring.flush(at: time)
        switch home.slot.contents {
        case .empty: break
        case .torn: return
        case .session(let session):
            guard home.keyring.disk?.header.position == session.header.position else { return }
        }
        agent = nil
        swap(&home.slot, &home.otherSlot)
        after(random.time(10, 5000), .agentStarts)
    }

    /// As `systemctl --user stop` does it, or a logout; and what the user starts again later.
    private func stop() {
        guard !isStopped, agent != nil else { return }
        isStopped = true
        agent?.stop()
        after(1_000_000_000, .stopping(since: time))
    }

    func finishStopping(_ since: Int64) {
        guard !isOff, isStopped else { return }
        if agent?.isIdle == false, time - since < 300_000_000_000 {
            after(1_000_000_000, .stopping(since: since))
            return
        }
        endProcesses()
        loseRuntime()
        after(random.time(100, random.isOne(in: 3) ? 7_000_000 : 20_000), .agentStarts)
    }

    private func suspend() {
        // The boot clock goes on, and nothing else does.
        let span = random.time(1000, random.isOne(in: 3) ? 40_000_000 : 900_000)
        home.keyring.flush(at: time)
        time += span
        slept += span
        home.keyring.sleep(for: span)
        lastResume = time
        lastTrouble = max(lastTrouble, time)
        after(random.time(0, 500), .keyringNews)
        agent?.resumed()
    }

    func powerOff(_ since: Int64) {
        guard !isOff else { return }
        if let agent, !agent.isIdle, time - since < 90_000_000_000 {
            after(1_000_000_000, .poweringOff(since: since))
            return
        }
        losingWrites(.slotLostUnstored) {
            home.keyring.shutDown(at: time)
        } noting: {
            $0.lostByLateKeyring = true
        }
        home.syncState()
        turnOff()
    }

    private func cutPower() {
        losingWrites(.powerCutBeforeSync) {
            home.keyring.cutPower(at: time)
        } noting: {
            $0.lostByPowerCut = true
        }
        home.cutPower(keepsUnsynced: random.isOne(in: 2))
        // What was not recorded safely when its exchange was killed, the server says again.
        let dead = Set((home.signIns?.dead ?? []).map(\.signIn))
        over.formIntersection(dead)
        turnOff()
    }

    private func turnOff() {
        log("the machine is off")
        endProcesses()
        isOff = true
        turnedOffAt = time
        isStopped = false
        loseRuntime()
        timers.removeAll { $0.kind.endsWithPower }
        after(random.time(5000, random.isOne(in: 3) ? 7_000_000 : 90_000), .agentStarts)
    }

    private func endProcesses() {
        for process in running + waiting {
            process.agent = nil
            process.isKilled = true
            noteUnslotted(process)
        }
        waiting = []
        agent = nil
        toldUntil = 0
        touch()
    }

    /// The slot and the runtime directory end with the user's service manager.
    private func loseRuntime() {
        replaceSlot()
        home.otherSlot = SimulatedSlot()
        home.runtimeMarks = [:]
        releaseTreasure()
    }

    private func stepClock() {
        switch random.below(4) {
        case 0: wallOffset = random.time(-2_000_000_000, 2_000_000_000) / 1_000_000 * 600
        case 1: wallOffset += random.time(-120_000, 120_000) / 1_000_000
        case 2: wallOffset = -SimulatedServer.epoch + 60_000
        default: wallOffset = 0
        }
        if random.isOne(in: 2) { after(random.time(1000, 3_000_000), .clockMended) }
    }

    // MARK: Server and network

    /// Every request gets the same for a while: a hotel's portal, an outage, a limit that is spent.
    private func cast(_ fault: Fault) {
        let until = time + random.time(1000, random.isOne(in: 8) ? 43_200_000 : 900_000)
        spell = (fault, until)
        if fault == .portalSpell {
            after(until - time + random.time(0, 500), .networkNews)
        } else {
            // Nothing tells of its end: the back-off has to end.
            let backOff = BackOff.server(lifetime: .seconds(server.lifetime))
            lastTrouble = max(lastTrouble, until + backOff.ceiling.nanoseconds)
        }
    }

    private func revoke() {
        guard random.isOne(in: 4), let session = home.keyring.live else { return }
        let family = server.fates[Answers.number(session.refreshToken)].family
        let row = server.ledger.currentToken(of: family)
        _ = server.ledger.revokeSession(row: row, of: server.identity)
    }

    // MARK: Keyring

    private func breakKeyring(_ condition: SimulatedKeyring.Condition) {
        home.keyring.condition = condition
        after(random.time(10, random.isOne(in: 3) ? 3_000_000 : 20_000), .keyringMended)
        if random.isOne(in: 2) {
            let failure = Failure(
                condition == .locked ? .keyringLocked : .keyringUnavailable, "noticed")
            after(random.time(0, 2000), .keyringLossNews(failure))
        }
    }

    /// The bus starts it again; with or without the user's password.
    private func killKeyring() {
        losingWrites(nil) {
            home.keyring.kill(at: time)
        } noting: {
            $0.lostByLateKeyring = true
        }
        after(random.time(10, 5000), .keyringRestarted)
        after(random.time(0, 100), .keyringLossNews(Failure(.keyringUnavailable, "noticed")))
    }

    func restartKeyring() {
        guard home.keyring.condition == .gone else { return }
        if random.isOne(in: 2) {
            home.keyring.condition = .locked
            after(random.time(1000, 120_000), .keyringMended)
        } else {
            recoverKeyring()
            after(random.time(0, 2000), .keyringNews)
        }
    }

    /// It answers again, and does what nobody waits for any more.
    func recoverKeyring() {
        home.keyring.recover(at: time)
        noteTreasure()
    }

    /// Does what takes back the keyring to what is on the disk, and remembers whose tokens it costs.
    ///
    /// `loss` is what becomes of a sign-in that a late keyring had not written and that is nowhere else;
    /// nil where that must not be.
    private func losingWrites(
        _ loss: Loss?, _ takeBack: () -> Void,
        noting note: (inout SimulatedServer.TokenFate) -> Void
    ) {
        guard let live = home.keyring.live else { return takeBack() }
        takeBack()
        defer { releaseTreasure() }
        guard home.keyring.live?.refreshToken != live.refreshToken else { return }
        let token = Answers.number(live.refreshToken)
        server.note(server.fates[token].parent, note)
        if let older = home.keyring.token { server.note(older, note) }
        loseSignIn(token, loss)
    }

    /// Whether the slot was lost that held the token: of what a late keyring has of it nobody knows whether it is in
    /// the file.
    func lostItsSlot(_ token: Int) -> Bool {
        server.fates[server.fates[token].parent].lostItsSlot
    }

    /// A late keyring that has not written a new sign-in is as good as reset, or brings back the
    /// session before it, whose successor had given up the slot to it.
    ///
    /// `loss` as above, once no slot has it either.
    func loseSignIn(_ token: Int, _ loss: Loss?) {
        let family = server.fates[token].family
        guard !home.keyring.writesAtOnce,
            let signIn = families.first(where: { $0.value == family }),
            home.keyring.live?.header.signIn != signIn.key
        else { return }
        let isOfSlot = lostItsSlot(token)
        if let older = home.keyring.token {
            guard server.fates[older].family.number < family.number else { return }
            if isOfSlot { server.note(older) { $0.lostItsSlot = true } }
        }
        let isInSlot =
            home.slot.token == token || running.contains { $0.slot.token == token && !$0.isKilled }
        if isInSlot, loss == nil { return }
        isDisturbed = true
        disturbedAt = time
        // Its exchange was cut short, and nobody was told of it; or it is over, and only not deleted yet.
        guard toldSignIns.contains(signIn.key), !isOver(signIn.key) else { return }
        lose(isOfSlot ? .slotLostUnstored : loss)
    }
}
