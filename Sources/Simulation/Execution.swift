internal import AgentCore

/// How exchanges run: the procedures that canopyd-exchange runs, in a world of this episode's.
extension Episode {
    func spawnTime() -> Int64 { time + random.time(1, 20) }

    func start(_ process: SimulatedProcess) {
        waiting.append(process)
        touch()
        log("start \(Episode.summary(process.job))")
    }

    func kill(_ process: SimulatedProcess) {
        touch()
        process.isKilled = true
        if process.isRunning {
            noteUnslotted(process)
            releaseTreasure()
        } else {
            waiting.removeAll { $0 === process }
            process.agent?.heard(nil)
        }
    }

    func run(_ process: SimulatedProcess) {
        figures.exchanges += 1
        let outcome = run(process, in: home)
        touch()
        log("end of \(Episode.summary(process.job)): \(outcome.map(Episode.summary) ?? "killed")")
        guard violation == nil else { return }
        if let outcome { note(outcome, process) }
        // The repetition of a token was put off for it, as its user wished.
        if case .signOut = process.job { lastTrouble = max(lastTrouble, time) }
        // What was taken from keyring or slot while it ran, it was the last to have.
        if takenAt >= process.readyAt { releaseTreasure() }
        if process.slot !== home.slot { noteLost(process.slot) }
        process.agent?.heard(outcome)
    }

    /// Runs it to its end; nil if it was killed.
    func run(_ process: SimulatedProcess, in home: SimulatedHome) -> ExchangeOutcome? {
        process.isRunning = true
        running.append(process)
        let outcome = execute(process, in: home)
        running.removeLast()
        if home.lockHolder === process { home.lockHolder = nil }
        return outcome
    }

    private func execute(_ process: SimulatedProcess, in home: SimulatedHome) -> ExchangeOutcome? {
        let world = SimulatedExchange(self, home: home, process: process)
        do throws(SimulatedExchange.Killed) {
            switch process.job {
            case .load: return try Load(in: world).run()
            case .rotate(let mayPresent, let isLast):
                return try Rotation(
                    in: world, known: process.known, mayPresent: mayPresent,
                    slotKeptFor: process.slotKeptFor, isSlotRewritten: process.isSlotRewritten,
                    isLast: isLast
                ).run()
            case .signIn:
                return try SignIn(
                    in: world, id: SignInID(high: random.word(), low: random.word()),
                    baseURL: "https://canopy.example", publishableKey: "pk_example"
                ).run()
            case .signOut(let isLocal):
                return try SignOut(
                    in: world, isLocal: isLocal, slotKeptFor: process.slotKeptFor,
                    isSlotRewritten: process.isSlotRewritten
                ).run()
            case .question(let token, let revokes):
                return try world.ask(with: token, toEnd: revokes)
            }
        } catch {
            return nil
        }
    }

    private static func summary(_ job: SimulatedProcess.Job) -> String {
        switch job {
        case .load: "load"
        case .rotate(let mayPresent, let isLast):
            mayPresent ? "rotate" : isLast ? "store for good" : "store"
        case .signIn: "sign in"
        case .signOut(let isLocal): isLocal ? "sign out here" : "sign out"
        case .question(_, let revokes): revokes ? "revoke" : "question"
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
        case .signInRequired(let reason, _, _): "sign-in required, \(reason)"
        case .signedOut: "signed out"
        case .rejected: "rejected"
        case .challenged: "challenged"
        case .document: "document"
        case .tokenRefused: "token refused"
        }
    }

    func startAgent() {
        if isOff {
            isOff = false
            let began = max(turnedOffAt, time - random.time(3000, 20_000))
            if !isContainer { bootedAt = began }
            bootNumber += 1
            boot = BootID("boot \(bootNumber)")
            if random.isOne(in: 2) {
                home.keyring.condition = .locked
                after(random.time(1000, 120_000), .keyringMended)
            }
        }
        guard agent == nil else { return }
        isStopped = false
        if !keepsDescriptors { replaceSlot() }
        log("canopyd starts in \(boot.text)")
        agent = SimulatedAgent(self, mode: mode)
        agent?.settle()
    }

    /// The next canopyd makes a new slot; the old one lives as long as an exchange holds it.
    func replaceSlot() {
        let old = home.slot
        home.slot = SimulatedSlot()
        if !(running + waiting).contains(where: { $0.slot === old && !$0.isKilled }) {
            noteLost(old)
        }
    }

    /// An exchange that ends alone had a token that its slot did not take.
    func noteUnslotted(_ process: SimulatedProcess) {
        if process.isSlotRefused, let token = process.received { noteLost(token) }
    }

    /// The last holder of a slot is gone.
    private func noteLost(_ slot: SimulatedSlot) {
        guard let token = slot.token else { return }
        noteLost(token)
    }

    private func noteLost(_ token: Int) {
        let parent = server.fates[token].parent
        server.note(parent) { $0.lostItsSlot = true }
        loseSignIn(token, nil)
        releaseTreasure()
    }
}
