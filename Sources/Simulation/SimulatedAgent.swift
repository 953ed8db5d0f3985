internal import AgentCore

/// canopyd, for one profile: owns a machine, performs its steps, and answers clients.
///
/// Does what canopyd's `Agent` does, in the same order, without sockets and processes.
final class SimulatedAgent {
    /// A client that waits for a token, or for a new generation.
    struct Waiter {
        let kind: Kind
        /// In the true time.
        let deadline: Int64
        var sawAttempt = false

        enum Kind {
            case token(minimumValidity: TimeSpan?)
            case rotation(of: Generation?)
        }
    }

    /// A client that signs in or out; its deadline is for its turn to come.
    struct Request {
        let job: SimulatedProcess.Job
        let deadline: Int64
    }

    private unowned let episode: Episode
    private(set) var machine: RotationMachine
    private(set) var process: SimulatedProcess?
    private(set) var waiters: [Waiter] = []
    private(set) var requests: [Request] = []
    private var isStopping = false
    private var hasStoredForGood = false

    /// How long an exchange may take to get ready, as in canopyd.
    private static let preparationPatience: Int64 = 60_000_000_000

    init(_ episode: Episode, mode: RotationMachine.Mode) {
        self.episode = episode
        machine = RotationMachine(
            boot: episode.boot, mode: mode, holdsSuccessor: episode.home.slot.isFull)
    }

    /// The earliest thing to be done unasked, in the true time.
    var wakeUp: Int64 {
        var earliest = Int64.max
        if let process {
            if let deadline = process.deadline { earliest = deadline }
        } else if let time = machine.wakeUp, !isStopping {
            earliest = episode.time(of: time)
        }
        for waiter in waiters { earliest = min(earliest, waiter.deadline) }
        for request in requests { earliest = min(earliest, request.deadline) }
        return earliest
    }

    func wake() {
        if let process, let deadline = process.deadline, deadline <= episode.time {
            process.deadline = nil
            episode.kill(process)
        }
        let now = episode.now
        let late = waiters.filter { $0.deadline <= episode.time }
        waiters.removeAll { $0.deadline <= episode.time }
        for waiter in late { answerAtDeadline(waiter, now) }
        requests.removeAll { $0.deadline <= episode.time }
        settle()
    }

    /// Starts nothing new but a last attempt to store what is in the slot.
    func stop() {
        isStopping = true
        let slot = episode.home.slot
        if let process, !process.isPresenting, !slot.isFull || process.job.kind != .rotate {
            episode.kill(process)
        }
        storeForGood()
    }

    private func storeForGood() {
        guard process == nil, !hasStoredForGood, episode.home.slot.isFull else { return }
        hasStoredForGood = true
        start(.rotate(mayPresent: false, isLast: true))
    }

    var isIdle: Bool { process == nil }

    // MARK: Clients

    func wantToken(minimumValidity: TimeSpan?, timeout: Int64) {
        let now = episode.now
        let verdict = machine.verdict(minimumValidity: minimumValidity, at: now)
        let deadline = episode.time + timeout
        switch verdict {
        case .token, .refused:
            episode.answered(verdict, minimumValidity: minimumValidity, deadline: deadline)
        case .wait:
            machine.validityWanted(at: now)
            waiters.append(
                Waiter(kind: .token(minimumValidity: minimumValidity), deadline: deadline))
            settle()
        }
    }

    func wantRotation(timeout: Int64) {
        let now = episode.now
        let present = machine.session?.position
        guard machine.rotationForced(at: now) else {
            if case .paused = machine.phase { return episode.answeredOtherwise(episode.time) }
            return wantToken(minimumValidity: nil, timeout: timeout)
        }
        waiters.append(
            Waiter(kind: .rotation(of: present), deadline: episode.time + timeout))
        settle()
    }

    func wantSignIn() {
        if machine.phase == .ended(.signedOut) { forget() }
        request(.signIn)
    }

    func wantSignOut(isLocal: Bool) {
        guard !machine.isUnknown else { return }
        request(.signOut(isLocal: isLocal))
    }

    /// A question to the server, or the order to end the session, if there is a token to ask with.
    func wantAnswer(revokes: Bool) {
        guard case .token(let token) = machine.verdict(minimumValidity: nil, at: episode.now)
        else { return }
        request(.question(token.value, revokes: revokes))
    }

    private func request(_ job: SimulatedProcess.Job) {
        requests.append(Request(job: job, deadline: episode.time + 55_000_000_000))
        settle()
    }

    // MARK: Surroundings

    /// The configuration was reloaded.
    func modeChanged(to mode: RotationMachine.Mode) {
        machine.modeChanged(to: mode, at: episode.now, draw: episode.draw())
        settle()
    }

    func surroundingsChanged() {
        machine.surroundingsChanged(at: episode.now)
        settle()
    }

    func resumed() {
        machine.resumed(at: episode.now)
        settle()
    }

    func keyringChanged() {
        machine.keyringChanged(at: episode.now)
        settle()
    }

    func keyringLost(_ failure: Failure) {
        machine.keyringLost(failure, at: episode.now)
        settle()
    }

    // MARK: Exchanges

    func settle() {
        episode.touch()
        if process == nil, !isStopping { proceed() }
        if isStopping { storeForGood() }
        answerWaiters()
    }

    private func proceed() {
        if let request = requests.first, !machine.isRepeating || request.job.mayPrecedeRepetition {
            requests.removeFirst()
            return start(request.job)
        }
        switch machine.step(at: episode.now.boot) {
        case .nothing: break
        case .load: start(.load)
        case .rotate(let mayPresent): start(.rotate(mayPresent: mayPresent))
        }
    }

    private func start(_ job: SimulatedProcess.Job) {
        machine.exchangeBegan(job.kind, at: episode.now.boot)
        let started = SimulatedProcess(
            job, known: machine.session?.position, slot: episode.home.slot, agent: self,
            readyAt: episode.spawnTime(),
            deadline: episode.time + SimulatedAgent.preparationPatience)
        started.slotKeptFor = machine.slotKeptFor(at: episode.now.boot)
        started.isSlotRewritten = machine.isSlotRewritten
        process = started
        episode.start(started)
    }

    func heard(_ progress: ExchangeProgress) {
        machine.exchangeProgressed(progress, at: episode.now)
        if progress == .presenting { process?.deadline = nil }
        settle()
    }

    /// The end of the exchange; nil if it ended without a word.
    func heard(_ outcome: ExchangeOutcome?) {
        let job = process?.job.kind
        let isSettling = machine.isSettling
        process = nil
        let now = episode.now
        if let outcome {
            machine.exchangeEnded(
                outcome, holdsSuccessor: episode.home.slot.isFull, at: now, draw: episode.draw())
            if job == .rotate || job == .load, !isSettling || !isResting { noteAttempt() }
        } else {
            machine.exchangeDied(
                "killed", holdsSuccessor: episode.home.slot.isFull, at: now, draw: episode.draw())
            if case .paused = machine.phase { noteAttempt() }
        }
        if machine.phase == .ended(.signedOut), requests.isEmpty {
            answerWaiters()
            if waiters.isEmpty { forget() }
        }
        settle()
    }

    private var isResting: Bool {
        if case .resting = machine.phase { true } else { false }
    }

    private func forget() {
        guard process == nil else { return }
        machine = RotationMachine(boot: episode.boot, mode: machine.mode)
        machine.becomeUnknown()
    }

    private func noteAttempt() {
        for index in waiters.indices { waiters[index].sawAttempt = true }
    }

    // MARK: Answers

    private func answerWaiters() {
        guard !waiters.isEmpty else { return }
        let now = episode.now
        let waiting = waiters
        waiters = []
        for waiter in waiting where !answer(waiter, now) { waiters.append(waiter) }
    }

    private func answer(_ waiter: Waiter, _ now: Moment) -> Bool {
        switch waiter.kind {
        case .token(let validity):
            let verdict = machine.verdict(minimumValidity: validity, at: now)
            if verdict == .wait {
                machine.validityWanted(at: now)
                return false
            }
            episode.answered(verdict, minimumValidity: validity, deadline: waiter.deadline)
            return true
        case .rotation(let generation):
            return answer(waiter, wantingNewerThan: generation, now)
        }
    }

    private func answer(
        _ waiter: Waiter, wantingNewerThan generation: Generation?, _ now: Moment
    ) -> Bool {
        switch machine.phase {
        case .unread, .exchanging:
            return false
        case .ended:
            episode.answeredOtherwise(waiter.deadline)
            return true
        case .paused:
            guard waiter.sawAttempt else { return false }
            episode.answeredOtherwise(waiter.deadline)
            return true
        case .resting:
            guard machine.session?.position != generation || waiter.sawAttempt else {
                _ = machine.rotationForced(at: now)
                return false
            }
            let verdict = machine.verdict(minimumValidity: nil, at: now)
            if verdict == .wait {
                machine.validityWanted(at: now)
                return false
            }
            episode.answered(verdict, minimumValidity: nil, deadline: waiter.deadline)
            return true
        }
    }

    private func answerAtDeadline(_ waiter: Waiter, _ now: Moment) {
        switch waiter.kind {
        case .token(let validity):
            let verdict = machine.verdictAtDeadline(minimumValidity: validity, at: now)
            if verdict == .wait {
                episode.answeredOtherwise(waiter.deadline)
            } else {
                episode.answered(verdict, minimumValidity: nil, deadline: waiter.deadline)
            }
        case .rotation:
            episode.answeredOtherwise(waiter.deadline)
        }
    }
}
