internal import AgentCore
internal import SandboxRules

/// Something that will happen at its time.
struct Timer {
    let at: Int64
    let kind: Kind

    enum Kind {
        case keyringMended
        /// A killed keyring is there again, unlocked or not.
        case keyringRestarted
        case keyringNews
        case keyringLossNews(Failure)
        case slotMended
        case stateMended
        case identityMended
        case networkNews
        case clockMended
        case agentStarts
        case stopping(since: Int64)
        case poweringOff(since: Int64)
        case delivery(token: Int, sent: Int64)

        /// Whether it is an event within the machine, which ends with its power.
        var endsWithPower: Bool {
            switch self {
            case .agentStarts, .stopping, .poweringOff, .keyringNews, .keyringLossNews,
                .keyringRestarted, .slotMended:
                true
            case .keyringMended, .stateMended, .identityMended, .networkNews, .clockMended,
                .delivery:
                false
            }
        }
    }
}

/// How time passes.
extension Episode {
    /// Steps after the faults have stopped: an on-demand profile with eager clients has some
    /// thousands.
    private static let stepsAtMost = 200_000

    var now: Moment {
        Moment(
            boot: BootTime(nanoseconds: time - bootedAt),
            wall: WallTime(
                milliseconds: SimulatedServer.epoch + time / 1_000_000 + wallOffset))
    }

    func time(of boot: BootTime) -> Int64 {
        boot.nanoseconds > .max / 8 ? .max : boot.nanoseconds + bootedAt
    }

    /// A step of an exchange.
    func step(taking span: Int64) {
        figures.steps += 1
        if figures.steps > stepBudget + Episode.stepsAtMost {
            violate("an exchange, or the work of canopyd, comes to no end")
        }
        if !isCalm, random.isOne(in: rates.atStep) { happen() }
        checkPromises()
        advance(to: time + span)
    }

    /// What is changed outside an event makes the next one unknown.
    func touch() { cachedNext = nil }

    var nextEvent: Int64 {
        if let cachedNext { return cachedNext }
        var next = isCalm ? nextClient : min(nextClient, nextFault)
        for timer in timers { next = min(next, timer.at) }
        if let agent { next = min(next, agent.wakeUp) }
        if running.count < 2 {
            for process in waiting { next = min(next, readiness(of: process)) }
        }
        cachedNext = next
        return next
    }

    private func readiness(of process: SimulatedProcess) -> Int64 {
        process.needsLock && home.lockHolder != nil ? process.lockDeadline : process.readyAt
    }

    func advance(to target: Int64) {
        let begin = time
        while violation == nil {
            let next = nextEvent
            guard next <= max(target, time) else { break }
            if next > time {
                time = next
                eventsAtOnce = 0
            }
            eventsAtOnce += 1
            if eventsAtOnce > 10_000 { violate("canopyd spins: its wake-ups come to no end") }
            fire()
            checkPromises()
        }
        if target > time { time = target }
        if time > begin { eventsAtOnce = 0 }
    }

    /// Does one thing that is due.
    private func fire() {
        touch()
        figures.steps += 1
        if let index = timers.firstIndex(where: { $0.at <= time }) {
            return fire(timers.remove(at: index))
        }
        if let agent, agent.wakeUp <= time { return agent.wake() }
        if running.count < 2, let index = waiting.firstIndex(where: { readiness(of: $0) <= time }) {
            return run(waiting.remove(at: index))
        }
        if nextClient <= time {
            comeClient()
        } else if !isCalm, nextFault <= time {
            nextFault = time + Int64(random.draw() * 2e9 * Double(server.lifetime))
            happen()
        }
    }

    func after(_ span: Int64, _ kind: Timer.Kind) {
        timers.append(Timer(at: time + span, kind: kind))
        touch()
    }

    private func fire(_ timer: Timer) {
        noteTrouble(timer.kind)
        switch timer.kind {
        case .keyringMended:
            recoverKeyring()
            home.keyring.dropsWrites = false
            after(random.time(0, 2000), .keyringNews)
        case .keyringRestarted: restartKeyring()
        case .keyringNews: agent?.keyringChanged()
        case .keyringLossNews(let failure): agent?.keyringLost(failure)
        case .slotMended: home.slot.isUnwritable = false
        case .stateMended:
            home.isDiskFull = false
            home.isStateUnreadable = false
        case .networkNews: agent?.surroundingsChanged()
        case .identityMended: server.ledger.setActive(server.identity, true)
        case .clockMended: wallOffset = 0
        case .agentStarts: startAgent()
        case .stopping(let since): finishStopping(since)
        case .poweringOff(let since): powerOff(since)
        case .delivery(let token, let sent): deliver(token, sent: sent)
        }
    }

    private func noteTrouble(_ kind: Timer.Kind) {
        switch kind {
        case .agentStarts, .keyringMended, .keyringRestarted, .keyringNews, .keyringLossNews,
            .identityMended, .clockMended, .stopping, .poweringOff, .networkNews:
            lastTrouble = max(lastTrouble, time)
        case .stateMended:
            // Nothing tells of it: the back-off has to end.
            lastTrouble = max(lastTrouble, time + BackOff.local.ceiling.nanoseconds)
        case .slotMended, .delivery:
            break
        }
    }
}
