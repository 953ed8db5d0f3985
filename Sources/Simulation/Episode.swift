internal import AgentCore
internal import SandboxRules

/// One user, one profile, one machine and one server, from a sign-in through a time of faults to a
/// quiet end.
///
/// Time is virtual. An exchange is an ordinary call that lets time pass in each of its steps, and
/// whatever else is due then happens within: a second exchange that wants the lock waits until the
/// first is over, as it would.
package final class Episode {
    package let seed: UInt64
    package let theme: Theme

    /// The first promise that was broken.
    package internal(set) var violation: Violation?
    package internal(set) var figures = Figures()

    let rates: FaultRates
    var random: SeededRandom
    var server: SimulatedServer
    let home: SimulatedHome
    var agent: SimulatedAgent?

    /// Nanoseconds of true time, the server's.
    var time: Int64 = 0
    var bootedAt: Int64 = -3_600_000_000_000
    var bootNumber = 1
    var boot = BootID("boot 1")

    /// Milliseconds that our wall clock is ahead of the true time.
    var wallOffset: Int64 = 0
    var hasSteppedClock = false

    var networkDownUntil: Int64 = 0
    var isCalm = true
    var isOff = false

    /// Whether keyring or home were restored, reset, deleted or copied since the last sign-in.
    var isDisturbed = false
    var wasEverRestored = false
    private var disturbedAt: Int64 = 0

    /// Whether the last sign-in ended after its canopyd.
    private var wasSignedInAlone = false

    /// When something last went wrong, or was mended.
    var lastTrouble: Int64 = 0

    /// The exchange whose request is in flight.
    var isPresenting: SimulatedProcess?

    /// By family number: the highest generation presented.
    var highest: [Int] = []
    var over: Set<SignInID> = []
    var families: [SignInID: FamilyID] = [:]
    var saidDead: Set<Int> = []

    /// Until when the server asked us to wait, if nothing has happened since that may lose it.
    var toldUntil: Int64 = 0
    var toldFamily: FamilyID?
    var backup: (session: StoredSession?, signIns: KnownSignIns?)?

    private let stepBudget: Int

    /// Steps after the faults have stopped: an on-demand profile with eager clients has some
    /// thousands.
    private static let stepsAtMost = 200_000
    private let mode: RotationMachine.Mode
    private let hold: Int64
    private var timers: [Timer] = []
    private var waiting: [SimulatedProcess] = []
    private var running: [SimulatedProcess] = []
    private var nextClient: Int64 = 0
    private var nextFault: Int64 = 0
    private var lastResume: Int64 = 0
    private var eventsAtOnce = 0
    private var isStale = true
    private var cachedNext: Int64 = 0
    private var anchors: UInt64 = 0
    private let isTraced: Bool
    private var trace: [String] = []

    private struct Timer {
        let at: Int64
        let kind: Kind

        enum Kind {
            case keyringMended
            case keyringNews
            case keyringLossNews(Failure)
            case stateMended
            case identityMended
            case networkNews
            case clockMended
            case agentStarts
            case poweringOff(since: Int64)
            case delivery(token: Int, sent: Int64, boot: Int)
        }
    }

    /// `steps`: after so many the faults stop.
    package init(seed: UInt64, theme: Theme, steps: Int, isTraced: Bool = false) {
        self.seed = seed
        self.theme = theme
        self.isTraced = isTraced
        stepBudget = steps
        rates = theme.rates
        random = SeededRandom(seed: seed)
        var rules = ServerRules()
        rules.keepsHistory = false
        rules.throttlesSignIns = false
        rules.grace = .seconds([0, 10, 10, 30, 120][random.below(5)])
        rules.graceAnswer = random.isOne(in: 2) ? .sameSuccessor : .newSuccessor
        let lifetime: Int64 = [60, 300, 900, 900, 3600][random.below(5)]
        if random.isOne(in: 8) { rules.refreshTokenLifetime = .seconds(lifetime * 6 + 7200) }
        server = SimulatedServer(rules: rules, lifetime: lifetime)
        hold = RotationTiming.hold(lifetime: .seconds(lifetime)).nanoseconds
        home = SimulatedHome(keyring: SimulatedKeyring(writesAtOnce: !random.isOne(in: 5)))
        mode = random.isOne(in: 5) ? .onDemand : .ahead
        if random.isOne(in: 4) { wallOffset = random.time(-400, 400) }
    }

    // MARK: The course of an episode

    /// Runs it to its end.
    package func run() {
        figures.episodes += 1
        agent = SimulatedAgent(self, mode: mode)
        agent?.settle()
        advance(to: time + 2_000_000_000)
        isCalm = theme != .signIns
        agent?.wantSignIn()
        advance(to: time + 20_000_000_000)
        isCalm = false
        while figures.steps < stepBudget, violation == nil {
            advance(to: nextEvent)
        }
        endQuietly()
        if violation != nil { violation = violation.map(traced) }
    }

    private func traced(_ violation: Violation) -> Violation {
        Violation(rule: violation.rule, seed: seed, theme: theme, trace: trace)
    }

    /// The faults stop, time passes, and all must be well.
    private func endQuietly() {
        guard violation == nil else { return }
        log("the faults stop")
        isCalm = true
        home.isDiskFull = false
        home.isStateUnreadable = false
        home.keyring.recover(at: time)
        home.keyring.dropsWrites = false
        networkDownUntil = 0
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
        case .restoredCopy, .keyringReset, .otherMachine:
            guard isDisturbed else {
                return violate(
                    "I5: \(reason.rawValue) was said, and nothing was restored or reset")
            }
            figures.refusedByDesign += 1
        }
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
        guard violation == nil else { return }
        guard violation == nil, !isServed(agent) else { return }
        violate("a sign-in without faults brought no token")
    }

    // MARK: Time

    var now: Moment {
        Moment(
            boot: BootTime(nanoseconds: time - bootedAt),
            wall: WallTime(
                milliseconds: SimulatedServer.epoch + time / 1_000_000 + wallOffset))
    }

    func time(of boot: BootTime) -> Int64 {
        boot.nanoseconds > .max / 8 ? .max : boot.nanoseconds + bootedAt
    }

    func draw() -> Double { random.draw() }

    /// A step of an exchange.
    func step(taking span: Int64) {
        figures.steps += 1
        if figures.steps > stepBudget + Episode.stepsAtMost {
            violate("an exchange, or the work of canopyd, comes to no end")
        }
        if !isCalm, random.isOne(in: rates.atStep) { happen() }
        advance(to: time + span)
    }

    /// What is changed outside an event makes the next one unknown.
    func touch() { isStale = true }

    private var nextEvent: Int64 {
        if isStale {
            isStale = false
            var next = isCalm ? nextClient : min(nextClient, nextFault)
            for timer in timers { next = min(next, timer.at) }
            if let agent { next = min(next, agent.wakeUp) }
            if running.count < 2 {
                for process in waiting { next = min(next, readiness(of: process)) }
            }
            cachedNext = next
        }
        return cachedNext
    }

    private func readiness(of process: SimulatedProcess) -> Int64 {
        process.needsLock && home.lockHolder != nil ? process.lockDeadline : process.readyAt
    }

    private func advance(to target: Int64) {
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
        }
        if target > time { time = target }
        if time > begin { eventsAtOnce = 0 }
    }

    /// Does one thing that is due.
    private func fire() {
        isStale = true
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

    private func after(_ span: Int64, _ kind: Timer.Kind) {
        timers.append(Timer(at: time + span, kind: kind))
        isStale = true
    }

    private func fire(_ timer: Timer) {
        switch timer.kind {
        case .agentStarts, .keyringMended, .keyringNews, .keyringLossNews, .identityMended,
            .clockMended, .poweringOff, .networkNews:
            lastTrouble = max(lastTrouble, time)
        case .stateMended:
            // Nothing tells of it: the back-off has to end.
            lastTrouble = max(lastTrouble, time + BackOff.local.ceiling.nanoseconds)
        case .delivery:
            break
        }
        switch timer.kind {
        case .keyringMended:
            home.keyring.recover(at: time)
            home.keyring.dropsWrites = false
            after(random.time(0, 2000), .keyringNews)
        case .keyringNews: agent?.keyringChanged()
        case .keyringLossNews(let failure): agent?.keyringLost(failure)
        case .stateMended:
            home.isDiskFull = false
            home.isStateUnreadable = false
        case .networkNews: agent?.surroundingsChanged()
        case .identityMended: server.ledger.setActive(server.identity, true)
        case .clockMended: wallOffset = 0
        case .agentStarts: startAgent()
        case .poweringOff(let since): powerOff(since)
        case .delivery(let token, let sent, let boot): deliver(token, sent: sent, in: boot)
        }
    }

    // MARK: Processes

    func spawnTime() -> Int64 { time + random.time(1, 20) }

    func start(_ process: SimulatedProcess) {
        waiting.append(process)
        isStale = true
        log("start \(process.job)")
    }

    func kill(_ process: SimulatedProcess) {
        isStale = true
        process.isKilled = true
        guard !process.isRunning else { return }
        waiting.removeAll { $0 === process }
        process.agent?.heard(nil)
    }

    private func run(_ process: SimulatedProcess) {
        figures.exchanges += 1
        process.isRunning = true
        running.append(process)
        let outcome = execute(process, in: home)
        running.removeLast()
        if home.lockHolder === process { home.lockHolder = nil }
        isStale = true
        log("end of \(process.job): \(outcome.map(Episode.summary) ?? "killed")")
        guard violation == nil else { return }
        if let outcome { note(outcome, process) }
        process.agent?.heard(outcome)
    }

    private func execute(_ process: SimulatedProcess, in home: SimulatedHome) -> ExchangeOutcome? {
        let world = SimulatedExchange(self, home: home, process: process)
        do throws(SimulatedExchange.Killed) {
            switch process.job {
            case .load: return try Load(in: world).run()
            case .rotate(let mayPresent):
                return try Rotation(in: world, known: process.known, mayPresent: mayPresent).run()
            case .signIn:
                return try SignIn(
                    in: world, id: SignInID(high: random.word(), low: random.word()),
                    baseURL: "https://canopy.example", publishableKey: "pk_example"
                ).run()
            case .signOut(let isLocal): return try SignOut(in: world, isLocal: isLocal).run()
            }
        } catch {
            return nil
        }
    }

    private static func summary(_ outcome: ExchangeOutcome) -> String {
        switch outcome {
        case .session(let report):
            "session g\(report.header.generation)"
                + (report.isAmbiguous ? " ambiguous" : "")
                + (report.storeFailure == nil ? "" : " unstored")
        case .tooEarly(let report, let wait):
            "too early g\(report.header.generation) \(wait.seconds)"
        case .failed(let failure): "failed \(failure.kind) \(failure.detail)"
        case .signInRequired(let reason, _): "sign-in required, \(reason)"
        case .signedOut: "signed out"
        case .rejected: "rejected"
        case .challenged: "challenged"
        case .document: "document"
        }
    }

    /// What an outcome promises.
    private func note(_ outcome: ExchangeOutcome, _ process: SimulatedProcess) {
        switch outcome {
        case .signInRequired(let reason, _) where reason.isFinal:
            guard let current = home.signIns?.current else { return }
            over.insert(current)
            if reason != .signedOut, let family = families[current], !isDisturbed,
                !saidDead.contains(family.number)
            {
                violate("I5: \(reason.rawValue) was said without the server's word")
            }
        case .signedOut:
            if case .signOut = process.job {
                figures.signOuts += 1
                for death in home.signIns?.dead ?? [] { over.insert(death.signIn) }
            }
        case .session(let report):
            if case .signIn = process.job {
                figures.signIns += 1
                wasSignedInAlone = process.agent == nil
                // What was done to the home meanwhile may have been done to the new session.
                if disturbedAt < process.readyAt { isDisturbed = false }
            }
            if report.storeFailure == nil, let session = home.keyring.live,
                session.header.position != report.header.position, !isDisturbed
            {
                violate("a session was reported as stored that the keyring does not hold")
            }
        case .signInRequired, .tooEarly, .failed, .rejected, .challenged, .document:
            break
        }
    }

    func isOver(_ signIn: SignInID) -> Bool {
        over.contains(signIn) || home.signIns?.death(of: signIn) != nil
    }

    private func startAgent() {
        if isOff {
            isOff = false
            bootedAt = time - random.time(3000, 20_000)
            bootNumber += 1
            boot = BootID("boot \(bootNumber)")
            if random.isOne(in: 2) {
                home.keyring.condition = .locked
                after(random.time(1000, 120_000), .keyringMended)
            }
        }
        guard agent == nil else { return }
        log("canopyd starts in \(boot.text)")
        agent = SimulatedAgent(self, mode: mode)
        agent?.settle()
    }

    // MARK: Clients

    private func comeClient() {
        nextClient =
            time
            + (random.isOne(in: 3)
                ? random.time(0, 2000)
                : Int64(random.draw() * 0.5e9 * Double(server.lifetime)))
        guard let agent, !isOff else { return }
        figures.clients += 1
        if !isCalm, act(agent) { return }
        let timeout = random.isOne(in: 8) ? 0 : random.time(100, 120_000)
        switch random.below(10) {
        case 0: agent.wantRotation(timeout: timeout)
        case 1...4: agent.wantToken(minimumValidity: nil, timeout: timeout)
        default:
            let validity = random.draw() * 1.1 * Double(server.lifetime) * 1e9
            agent.wantToken(
                minimumValidity: TimeSpan(nanoseconds: Int64(validity)), timeout: timeout)
        }
    }

    /// The user signs in or out.
    private func act(_ agent: SimulatedAgent) -> Bool {
        if case .ended = agent.machine.phase, random.isOne(in: 3) {
            agent.wantSignIn()
            return true
        }
        guard random.isOne(in: rates.userActs) else { return false }
        switch random.below(4) {
        case 0: agent.wantSignOut(isLocal: false)
        case 1: agent.wantSignOut(isLocal: true)
        default: agent.wantSignIn()
        }
        return true
    }

    /// A client was given a token or a refusal.
    func answered(
        _ verdict: RotationMachine.Verdict, minimumValidity: TimeSpan?, deadline: Int64
    ) {
        answeredOtherwise(deadline)
        guard case .token(let token) = verdict else { return }
        figures.tokensServed += 1
        let left = Answers.expiry(of: token.value) - SimulatedServer.now(time)
        if left <= .zero { violate("I6: an expired access token was handed out") }
        if let minimumValidity, left + .seconds(1) < minimumValidity {
            violate("an access token was handed out with less validity than was asked for")
        }
    }

    func answeredOtherwise(_ deadline: Int64) {
        if time > max(deadline, lastResume) {
            violate("a client waited beyond its deadline")
        }
    }

    // MARK: Judging

    func violate(_ rule: String) {
        guard violation == nil else { return }
        log("VIOLATION \(rule)")
        violation = Violation(rule: rule, seed: seed, theme: theme, trace: [])
    }

    func log(_ text: @autoclosure () -> String) {
        guard isTraced else { return }
        if trace.count > 400 { trace.removeFirst(200) }
        let seconds = Double(time / 1_000_000) / 1000
        trace.append("\(seconds) \(text())")
    }

    func checkPresenting(
        _ token: Int, of signIn: SignInID, from home: SimulatedHome, by process: SimulatedProcess
    ) {
        let fate = server.fates[token]
        log("present token \(token), generation \(fate.generation)")
        guard home === self.home else {
            return violate("I3: a copied home presented a token")
        }
        if isOver(signIn), !isDisturbed { violate("a session that is over was presented") }
        if fate.family.number < highest.count, fate.generation < highest[fate.family.number] {
            violate("I3: an older token was presented after a newer one")
        }
        if fate.generation > 0, !isDisturbed {
            let stored = home.keyring.writesAtOnce ? home.keyring.disk : home.keyring.live
            if stored.map({ Answers.number($0.refreshToken) }) != token {
                violate("I2: a token was presented before it was safely in the keyring")
            }
        }
        let lateStore = RotationTiming.lateStoreHold.nanoseconds
        if !home.keyring.writesAtOnce, fate.generation > 0, fate.storedInBoot == bootNumber,
            time - fate.storedAt < lateStore - Episode.storeTime, !isDisturbed
        {
            violate("I2: a token was presented before a late keyring can have written it")
        }
        if fate.receivedInBoot == bootNumber {
            if time < fate.notBefore { violate("a successor was presented within the hold") }
            let floor = RotationTiming.floor(lifetime: .seconds(server.lifetime)).nanoseconds
            if !fate.wasSent, fate.hasAccessToken, time - fate.receivedAt < floor {
                violate("two rotations came within the floor")
            }
        }
        if time < toldUntil, fate.family == toldFamily {
            violate("the server's Retry-After was not obeyed")
        }
    }

    /// A request that carries the token is on its way; whether one was before.
    func noteSent(_ token: Int) -> Bool {
        let fate = server.fates[token]
        while highest.count <= fate.family.number { highest.append(-1) }
        highest[fate.family.number] = max(highest[fate.family.number], fate.generation)
        let time = time
        server.note(token) {
            $0.wasSent = true
            $0.lastSentAt = time
        }
        return fate.wasSent
    }

    /// The server gets a token.
    func present(_ token: Int, isLate: Bool) -> RefreshOutcome {
        let outcome = server.refresh(token, isLate: isLate, at: time)
        log("the server, of token \(token)\(isLate ? " (late)" : ""): \(outcome)")
        switch outcome {
        case .rotated:
            let time = time
            server.note(token) { $0.firstAnsweredAt = time }
        case .harmlessRetry: break
        case .familyRevoked:
            isLate ? lose(.lateRequestAfterGrace) : lose(classify(token))
        case .identityRevoked:
            figures.incidents += 1
            if !isLate {
                violate("a token whose successor was presented ended every session of the identity")
            }
        case .refused(.expired): lose(.expired)
        case .refused: break
        }
        return outcome
    }

    func lose(_ loss: Loss?) {
        guard let loss else {
            return violate("a session was lost that need not have been")
        }
        log("lost: \(loss)")
        figures.losses[loss.rawValue] += 1
    }

    /// Why the family had to be revoked; nil if it need not have been.
    private func classify(_ token: Int) -> Loss? {
        let fate = server.fates[token]
        if fate.wasReplacedLate { return .lateRequestReplacedSuccessor }
        switch fate.successor {
        case .none: return couldAskInTime(fate) ? nil : .successorNeverReceived
        case .received: return .killedBeforeSlot
        case .inSlot: return fate.lostItsSlot ? .slotLostUnstored : nil
        case .stored:
            if fate.lostByPowerCut { return .powerCutBeforeSync }
            return wasEverRestored ? .restored : fate.lostItsSlot ? .slotLostUnstored : nil
        case .durable: return wasEverRestored ? .restored : nil
        }
    }

    /// Whether a lost answer could have been asked for again within the server's grace: it was known
    /// to be lost, nothing else went wrong, and there was more than time enough.
    private func couldAskInTime(_ fate: SimulatedServer.TokenFate) -> Bool {
        let graceEnds = fate.firstAnsweredAt + server.ledger.rules.grace.nanoseconds
        guard fate.lastSentAt > graceEnds else { return false }  // It was slow on its way.
        let ready = max(fate.knownLostAt, lastTrouble, networkDownUntil)
        return ready + Episode.retryPatience < graceEnds
    }

    /// What a call to the keyring takes after the hold was reckoned.
    private static let storeTime: Int64 = 500_000_000

    /// How soon after a failure the same bytes are asked for again, with all that an exchange does
    /// before: a start of canopyd's, the last of the quick retries, slow answers.
    private static let retryPatience: Int64 = 8_000_000_000

    /// `time` is when the call began: what is told of a suspend within one is no better.
    func noteStored(_ session: StoredSession, at time: Int64) {
        let bootNumber = bootNumber
        server.note(Answers.number(session.refreshToken)) {
            $0.storedAt = time
            $0.storedInBoot = bootNumber
        }
    }

    func noteSuccessor(_ session: StoredSession, _ progress: SimulatedServer.TokenFate.Progress) {
        let token = Answers.number(session.refreshToken)
        families[session.header.signIn] = server.fates[token].family
        server.noteSuccessor(token, progress)
    }

    // MARK: Late requests

    /// A request stays in a proxy that nobody waits for any more.
    func queueRequest(_ token: Int) {
        let isAfterHold = rates.deliversAfterHold && random.isOne(in: 4)
        let delay = Double(hold) * (isAfterHold ? 1.1 + 4 * random.draw() : random.draw())
        log("a request of token \(token) is queued for \(delay / 1e9) s")
        after(Int64(delay), .delivery(token: token, sent: time, boot: bootNumber))
    }

    private func deliver(_ token: Int, sent: Int64, in boot: Int) {
        let outcome = present(token, isLate: true)
        guard outcome == .identityRevoked else { return }
        if time - sent > hold {
            lose(.lateRequestAfterHold)
        } else if boot != bootNumber, hasSteppedClock {
            lose(.lateRequestAcrossBoots)
        } else {
            violate("a late request within the hold ended every session of the identity")
        }
    }

    // MARK: Faults

    /// Whether a fault comes now that comes once in `count` times.
    func isFault(_ fault: Fault, in count: Int) -> Bool {
        guard !isCalm, random.isOne(in: count) else { return false }
        figures.faults[fault.rawValue] += 1
        lastTrouble = max(lastTrouble, time + BackOff.local.ceiling.nanoseconds)
        if fault == .keyringCallFailed { toldUntil = 0 }
        return true
    }

    func isOne(in count: Int) -> Bool { random.isOne(in: count) }

    /// What a request gets in place of its answer; nil for its answer.
    func answerFault() -> Fault? {
        guard !isCalm, random.isOne(in: rates.request), !rates.answers.isEmpty else { return nil }
        let fault = rates.answers[random.below(rates.answers.count)]
        lastTrouble = max(lastTrouble, time)
        figures.faults[fault.rawValue] += 1
        log("fault: \(fault)")
        return fault
    }

    private func happen() {
        guard !isOff, !rates.events.isEmpty else { return }
        let fault = rates.events[random.below(rates.events.count)]
        figures.faults[fault.rawValue] += 1
        log("fault: \(fault)")
        isStale = true
        lastTrouble = max(lastTrouble, time)
        toldUntil = 0
        switch fault {
        case .exchangeKilled: killExchange()
        case .agentKilled: killAgent()
        case .bothKilled:
            killAgent()
            killExchange()
        case .suspended: suspend()
        case .rebooted:
            agent?.stop()
            after(1_000_000_000, .poweringOff(since: time))
        case .powerCut: cutPower()
        case .clockStepped: stepClock()
        case .networkDown:
            networkDownUntil = time + random.time(1000, 400_000)
            after(networkDownUntil - time + random.time(0, 500), .networkNews)
        case .sessionRevoked: revoke()
        case .identityInactive:
            server.ledger.setActive(server.identity, false)
            after(random.time(1000, 1_000_000), .identityMended)
        case .keyringLocked: breakKeyring(.locked)
        case .keyringGone: breakKeyring(.gone)
        case .keyringHangs: breakKeyring(.hanging)
        case .keyringDropsWrites:
            home.keyring.dropsWrites = true
            after(random.time(10, 60_000), .keyringMended)
        case .diskFull:
            home.isDiskFull = true
            after(random.time(10, 300_000), .stateMended)
        case .stateUnreadable:
            home.isStateUnreadable = true
            after(random.time(10, 300_000), .stateMended)
        case .keyringReset, .keyringRestored, .stateDeleted, .homeRestored, .homeCopied:
            disturb(fault)
        case .requestLost, .answerLost, .answerCut, .requestQueued, .portal, .serverError,
            .serverErrorAfterRotation, .throttled, .unavailable, .answerWithoutAccessToken,
            .keyringCallFailed, .stateCallFailed:
            preconditionFailure("a fault of a call happened by itself")
        }
    }

    private func killExchange() {
        if let process = running.last ?? waiting.last { kill(process) }
    }

    private func killAgent() {
        guard agent != nil else { return }
        // What runs goes on alone; what waits to be run has been started, too.
        for process in running + waiting { process.agent = nil }
        agent = nil
        after(random.time(100, 5000), .agentStarts)
    }

    private func suspend() {
        // The boot clock goes on, and nothing else does.
        time += random.time(1000, random.isOne(in: 3) ? 40_000_000 : 900_000)
        lastResume = time
        lastTrouble = max(lastTrouble, time)
        after(random.time(0, 500), .keyringNews)
        agent?.surroundingsChanged()
    }

    private func powerOff(_ since: Int64) {
        guard !isOff else { return }
        if let agent, !agent.isIdle, time - since < 90_000_000_000 {
            after(1_000_000_000, .poweringOff(since: since))
            return
        }
        home.keyring.shutDown()
        turnOff()
    }

    private func cutPower() {
        if let live = home.keyring.live {
            home.keyring.cutPower(at: time)
            if home.keyring.live?.refreshToken != live.refreshToken {
                let parent = server.fates[Answers.number(live.refreshToken)].parent
                server.note(parent) { $0.lostByPowerCut = true }
                if !home.keyring.writesAtOnce,
                    home.keyring.live?.header.signIn != live.header.signIn
                {
                    // KWallet had not written the new sign-in: as if the keyring had been reset.
                    isDisturbed = true
                    figures.losses[Loss.powerCutBeforeSync.rawValue] += 1
                }
                if let older = home.keyring.live {
                    server.note(Answers.number(older.refreshToken)) { $0.lostByPowerCut = true }
                }
            }
        } else {
            home.keyring.cutPower(at: time)
        }
        turnOff()
    }

    private func turnOff() {
        log("the machine is off")
        for process in running + waiting {
            process.agent = nil
            process.isKilled = true
        }
        waiting = []
        agent = nil
        isOff = true
        if case .session(let session) = home.slot {
            let parent = server.fates[Answers.number(session.refreshToken)].parent
            server.note(parent) { $0.lostItsSlot = true }
        }
        home.slot = .empty
        home.runtimeMarks = [:]
        timers.removeAll {
            switch $0.kind {
            case .agentStarts, .poweringOff, .keyringNews, .keyringLossNews: true
            case .keyringMended, .stateMended, .identityMended, .networkNews, .clockMended,
                .delivery:
                false
            }
        }
        after(random.time(5000, random.isOne(in: 3) ? 7_000_000 : 90_000), .agentStarts)
    }

    private func stepClock() {
        hasSteppedClock = true
        switch random.below(4) {
        case 0: wallOffset = random.time(-2_000_000_000, 2_000_000_000) / 1_000_000 * 600
        case 1: wallOffset += random.time(-120_000, 120_000) / 1_000_000
        case 2: wallOffset = -SimulatedServer.epoch + 60_000
        default: wallOffset = 0
        }
        if random.isOne(in: 2) { after(random.time(1000, 3_000_000), .clockMended) }
    }

    private func revoke() {
        guard random.isOne(in: 4), let session = home.keyring.live else { return }
        let family = server.fates[Answers.number(session.refreshToken)].family
        let row = server.ledger.currentToken(of: family)
        _ = server.ledger.revokeSession(row: row, of: server.identity)
    }

    private func breakKeyring(_ condition: SimulatedKeyring.Condition) {
        home.keyring.condition = condition
        after(random.time(10, random.isOne(in: 3) ? 3_000_000 : 20_000), .keyringMended)
        if random.isOne(in: 2) {
            let failure = Failure(
                condition == .locked ? .keyringLocked : .keyringUnavailable, "noticed")
            after(random.time(0, 2000), .keyringLossNews(failure))
        }
    }

    func freshAnchor() -> Anchor {
        anchors += 1
        return Anchor(inode: 1000 + anchors, birth: time)
    }

    private func disturb(_ fault: Fault) {
        switch fault {
        case .homeCopied:
            backup = (home.keyring.disk, home.signIns)
            return copyHome()
        case .keyringRestored:
            guard let backup else { return }
            home.keyring.replace(backup.session)
        case .homeRestored:
            guard let backup else { return }
            home.keyring.replace(backup.session)
            home.signIns = backup.signIns
            home.anchor = home.anchor == nil ? nil : freshAnchor()
        case .stateDeleted:
            home.signIns = nil
            home.anchor = nil
        case .keyringReset:
            home.keyring.replace(nil)
        default:
            preconditionFailure("\(fault) disturbs no home")
        }
        isDisturbed = true
        disturbedAt = time
        wasEverRestored = true
        after(random.time(0, 2000), .keyringNews)
    }

    /// A second machine with a copy of the home tries its luck.
    private func copyHome() {
        let isOtherMachine = random.isOne(in: 2)
        var keyring = SimulatedKeyring(writesAtOnce: home.keyring.writesAtOnce)
        keyring.replace(home.keyring.live)
        let copy = SimulatedHome(keyring: keyring, isOtherMachine: isOtherMachine)
        if !isOtherMachine {
            copy.signIns = home.signIns
            copy.anchor = freshAnchor()
        } else if random.isOne(in: 2) {
            copy.anchor = freshAnchor()
        }
        guard running.count < 2 else { return }
        for job in [SimulatedProcess.Job.load, .rotate(mayPresent: true)] {
            let process = SimulatedProcess(
                job, known: nil, agent: nil, readyAt: time, deadline: .max)
            process.isRunning = true
            running.append(process)
            let outcome = execute(process, in: copy)
            running.removeLast()
            if copy.lockHolder === process { copy.lockHolder = nil }
            if case .session = outcome {
                violate("I3: a copied home took itself for signed in")
            }
        }
    }
}
