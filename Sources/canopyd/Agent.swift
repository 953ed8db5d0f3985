internal import AgentCore
internal import LinuxSystem

/// The profiles being served: the only owner of state.
///
/// Every event changes one machine and is followed by ``settle(_:at:)``, which starts what is due
/// and answers whoever can be answered. Nothing is scheduled: ``nextWakeUp`` follows from the state.
final class Agent {
    /// Sends a reply to a client that was told to wait.
    var deliver: (ClientID, Reply) -> Void = { _, _ in }

    /// Sends an event to a subscriber; of those with one key only the latest matters.
    var publish: (ClientID, _ event: [UInt8], _ coalescingKey: String) -> Void = { _, _, _ in }

    /// The number of open connections.
    var connections: () -> Int = { 0 }

    /// What was asked so far, and how it was answered.
    var statistics: () -> RequestStatistics = { RequestStatistics() }

    /// Called when a state may have changed, for the service manager's status line.
    var onChange: () -> Void = {}

    var settings: Settings {
        didSet {
            for profile in profiles.values {
                profile.machine.mode = settings.mode(of: profile.name)
            }
            wakeUpIsStale = true
        }
    }

    private(set) var keyring = KeyringStanding(.ok, owner: nil)
    private(set) var rotations: [ProfileName: [String: Int64]] = [:]
    private(set) var durations: [JobKind: Histogram] = [:]

    private let startedAt = WallTime.now
    private let place: Place
    private let loop: EventLoop
    private let sleep: SleepInhibitor
    private let keyringWatch: KeyringWatch
    private let network: NetworkWatch
    private var profiles: [ProfileName: ServedProfile] = [:]

    /// Clients that asked for a profile that is not known, before the keyring was searched.
    private var strangers: [(client: ClientID, route: Route, deadline: BootTime)] = []
    private var hasSearched = false
    private var loading: ExchangeProcess?
    private var subscribers: [ClientID: ProfileName?] = [:]
    private var events = EventStream()
    private var isStopping = false
    private var wakeUpIsStale = true
    private var cachedWakeUp: BootTime?

    /// How long a request that needs an exchange of its own may wait for its turn.
    private static let requestPatience = TimeSpan.seconds(55)

    /// Where this daemon works.
    struct Place {
        let executable: String
        let stateDirectory: StateDirectory
        let machine: String
        let boot: BootID
    }

    init(_ place: Place, settings: Settings, loop: EventLoop) {
        self.place = place
        self.settings = settings
        self.loop = loop
        sleep = SleepInhibitor(on: loop)
        keyringWatch = KeyringWatch(on: loop)
        network = NetworkWatch(on: loop)
        sleep.onResume = { [unowned self] in surroundingsChanged(at: .now) }
        sleep.onWakeUpChange = { [unowned self] in wakeUpIsStale = true }
        network.onChange = { [unowned self] in surroundingsChanged(at: .now) }
        keyringWatch.onChange = { [unowned self] in keyringChanged(at: .now) }
        keyringWatch.onLoss = { [unowned self] in keyringLost($0, at: .now) }
    }

    /// Finds the profiles that the state directory knows, and starts reading them.
    func start(at now: Moment) {
        do throws(SystemError) {
            for name in try place.stateDirectory.profiles().prefix(Limits.profiles) {
                adopt(name)
            }
        } catch {
            Journal.error("The state directory cannot be read", ("error", "\(error)"))
        }
        load(at: now)
    }

    private func adopt(_ name: ProfileName) {
        do throws(StateDirectory.Unreadable) {
            guard let signIns = try place.stateDirectory.signIns(of: name),
                signIns.current != nil || !signIns.pending.isEmpty
            else { return }
            _ = served(name, account: signIns.account)
        } catch {
            // It is served all the same, and says what is wrong when it is asked for.
            Journal.error("A profile's state cannot be read", ("error", "\(error)"))
            _ = served(name, account: nil)
        }
    }

    // MARK: Requests

    /// Answers a request; nil if the answer comes later, through ``deliver``.
    func handle(_ route: Route, body: Secret?, from client: ClientID) -> Reply? {
        let now = Moment.now
        switch route {
        case .token(let name, let validity, let timeout, let asText):
            guard let profile = known(name) else {
                return unknown(name, route, timeout, client, now)
            }
            return token(profile, validity, timeout, asText, client, now)
        case .profiles:
            return .profiles(views(at: now))
        case .profile(let name):
            guard let profile = known(name) else { return Reply(Refusals.unknownProfile(name)) }
            return .profile(profile.view(at: now))
        case .refresh(let name, let generation, let timeout):
            guard let profile = known(name) else {
                return unknown(name, route, timeout, client, now)
            }
            return refresh(profile, generation, timeout, client, now)
        case .logIn(let name):
            guard let body else {
                return Reply(Problem(.badRequest, "the request has no body", profile: name))
            }
            guard profiles[name] != nil || profiles.count < Limits.profiles else {
                return Reply(
                    Problem(
                        .badRequest, "there are \(Limits.profiles) profiles already",
                        profile: name))
            }
            guard let profile = served(name, account: nil, isNew: true) else {
                return Reply(
                    Refusals.problem(
                        Failure(.storageFailed, "the successor slot cannot be made"), name))
            }
            return enqueue(.signIn(body), profile, client, now)
        case .multiFactor(let name):
            return Reply(
                Problem(
                    .badRequest,
                    "no challenge of this profile is open; sign in to get one", profile: name,
                    fix: "canopyctl login"))
        case .logOut(let name, let isLocal):
            return request(.signOut(isLocal: isLocal), name, route, client, now)
        case .identity(let name):
            return request(.identity, name, route, client, now)
        case .sessions(let name):
            return request(.sessions, name, route, client, now)
        case .revokeSession(let name, let id):
            return request(.revokeSession(id), name, route, client, now)
        case .events(let name):
            guard let name, known(name) == nil else { return .events }
            return Reply(Refusals.unknownProfile(name))
        case .status:
            return .status(status(at: now))
        case .metrics:
            return .metrics(metrics(at: now))
        }
    }

    /// What is said of the daemon as a whole.
    func status(at now: Moment) -> StatusView {
        StatusView(
            version: Version.text, startedAt: startedAt, keyring: (keyring.state, keyring.owner),
            connections: connections(), profiles: views(at: now))
    }

    private func metrics(at now: Moment) -> MetricsView {
        MetricsView(
            version: Version.text,
            profiles: views(at: now).map { ($0.profile, $0.state, $0.expiresAt) },
            rotations: rotations.sorted { $0.key < $1.key }.flatMap { profile, outcomes in
                outcomes.sorted { $0.key < $1.key }.map { (profile, $0.key, $0.value) }
            },
            exchanges: durations.sorted { $0.key.rawValue < $1.key.rawValue }.map {
                ($0.key, $0.value)
            },
            requests: statistics(), connections: connections(), keyring: keyring.state)
    }

    func views(at now: Moment) -> [ProfileView] {
        profiles.values.filter { !$0.machine.isUnknown }.sorted { $0.name < $1.name }
            .map { $0.view(at: now) }
    }

    /// A client is gone: whatever it waited for, nobody is to be told.
    func clientGone(_ client: ClientID) {
        strangers.removeAll { $0.client == client }
        subscribers[client] = nil
        for profile in profiles.values {
            profile.waiters.removeAll { $0.client == client }
            profile.requests.removeAll { $0.client == client }
            if profile.asker == client { profile.asker = nil }
        }
        wakeUpIsStale = true
    }

    /// Begins to tell a client of changes; returns the present states as its first events, or the
    /// problem.
    func subscribe(_ client: ClientID, profile name: ProfileName?) -> Subscription {
        let now = Moment.now
        if let name, known(name) == nil {
            return .refused(Refusals.unknownProfile(name))
        }
        subscribers[client] = .some(name)
        var first: [UInt8] = []
        for view in views(at: now) where name == nil || view.profile == name {
            first += events.state(view)
        }
        return .accepted(initial: first)
    }

    enum Subscription {
        case accepted(initial: [UInt8])
        case refused(Problem)
    }

    private func token(
        _ profile: ServedProfile, _ validity: TimeSpan?, _ timeout: TimeSpan, _ asText: Bool,
        _ client: ClientID, _ now: Moment
    ) -> Reply? {
        let verdict = profile.machine.verdict(minimumValidity: validity, at: now)
        if let reply = reply(verdict, profile, asText: asText, at: now) { return reply }
        profile.machine.validityWanted(at: now)
        return wait(
            .token(minimumValidity: validity, asText: asText), profile, timeout, client, now)
    }

    private func refresh(
        _ profile: ServedProfile, _ generation: Int64?, _ timeout: TimeSpan, _ client: ClientID,
        _ now: Moment
    ) -> Reply? {
        let present = profile.machine.session?.position
        if let generation, let present, present.number != generation {
            return token(profile, nil, timeout, false, client, now)
        }
        guard profile.machine.rotationForced(at: now) else {
            return unforced(profile, timeout, client, now)
        }
        return wait(
            .rotation(of: present, onlyIf: generation), profile, timeout, client, now)
    }

    /// What a forced rotation is told that may not begin: what holds it up, or the present token.
    private func unforced(
        _ profile: ServedProfile, _ timeout: TimeSpan, _ client: ClientID, _ now: Moment
    ) -> Reply? {
        if case .paused(let pause) = profile.machine.phase {
            return Reply(
                Refusals.problem(
                    pause.failure, profile.name, retryAfter: pause.until - now.boot))
        }
        return token(profile, nil, timeout, false, client, now)
    }

    private func wait(
        _ kind: ServedProfile.Waiter.Kind, _ profile: ServedProfile, _ timeout: TimeSpan,
        _ client: ClientID, _ now: Moment
    ) -> Reply? {
        profile.waiters.append(
            ServedProfile.Waiter(client: client, kind: kind, deadline: now.boot + timeout))
        settle(profile, at: now)
        return nil
    }

    /// The profile, if something is signed in under the name.
    private func known(_ name: ProfileName) -> ServedProfile? {
        guard let profile = profiles[name], !profile.machine.isUnknown else { return nil }
        return profile
    }

    /// A profile that is not known may yet be found in the keyring.
    private func unknown(
        _ name: ProfileName, _ route: Route, _ timeout: TimeSpan, _ client: ClientID, _ now: Moment
    ) -> Reply? {
        guard !hasSearched else { return Reply(Refusals.unknownProfile(name)) }
        strangers.append((client, route, now.boot + timeout))
        wakeUpIsStale = true
        return nil
    }

    private func request(
        _ kind: ServedProfile.Request.Kind, _ name: ProfileName, _ route: Route,
        _ client: ClientID, _ now: Moment
    ) -> Reply? {
        guard let profile = known(name) else {
            return unknown(name, route, Agent.requestPatience, client, now)
        }
        return enqueue(kind, profile, client, now)
    }

    private func enqueue(
        _ kind: ServedProfile.Request.Kind, _ profile: ServedProfile, _ client: ClientID,
        _ now: Moment
    ) -> Reply? {
        profile.requests.append(
            ServedProfile.Request(
                client: client, kind: kind, deadline: now.boot + Agent.requestPatience))
        settle(profile, at: now)
        return nil
    }

    // MARK: Time

    /// The earliest thing that is to be done unasked; nil for nothing.
    var nextWakeUp: BootTime? {
        if wakeUpIsStale {
            wakeUpIsStale = false
            var earliest = strangers.map(\.deadline).min()
            for profile in profiles.values {
                guard
                    let time = profile.wakeUp(
                        mayLoad: loading == nil && !isStopping,
                        mayRotate: !sleep.isPreparing && !isStopping, at: .now)
                else { continue }
                earliest = min(time, earliest ?? time)
            }
            for time in [loading?.deadline, keyringWatch.wakeUp, sleep.wakeUp] {
                if let time { earliest = min(time, earliest ?? time) }
            }
            cachedWakeUp = earliest
        }
        return cachedWakeUp
    }

    /// Does what is due.
    func wake(at now: Moment) {
        wakeUpIsStale = true
        loading?.expire(at: now.boot)
        keyringWatch.wake(at: now.boot)
        sleep.wake(at: now.boot)
        for stranger in strangers where stranger.deadline <= now.boot {
            deliver(stranger.client, Reply(Agent.timeout(nil)))
        }
        strangers.removeAll { $0.deadline <= now.boot }
        for profile in profiles.values {
            profile.process?.expire(at: now.boot)
            expire(profile, at: now)
            settle(profile, at: now)
        }
        load(at: now)
    }

    private func expire(_ profile: ServedProfile, at now: Moment) {
        let late = profile.waiters.filter { $0.deadline <= now.boot }
        profile.waiters.removeAll { $0.deadline <= now.boot }
        for waiter in late {
            deliver(waiter.client, lastReply(to: waiter, of: profile, at: now))
        }
        for request in profile.requests where request.deadline <= now.boot {
            deliver(request.client, Reply(Agent.timeout(profile.name)))
        }
        profile.requests.removeAll { $0.deadline <= now.boot }
    }

    private func lastReply(
        to waiter: ServedProfile.Waiter, of profile: ServedProfile, at now: Moment
    ) -> Reply {
        switch waiter.kind {
        case .token(let validity, let asText):
            let verdict = profile.machine.verdictAtDeadline(minimumValidity: validity, at: now)
            return reply(verdict, profile, asText: asText, at: now)
                ?? Reply(Agent.timeout(profile.name))
        case .rotation:
            return Reply(Agent.timeout(profile.name))
        }
    }

    private static func timeout(_ profile: ProfileName?) -> Problem {
        Problem(
            .timeout, "the answer did not come before the request's deadline; the work goes on",
            profile: profile, fix: "canopyctl status")
    }

    // MARK: Surroundings

    /// The machine woke up, or the network changed.
    private func surroundingsChanged(at now: Moment) {
        for profile in profiles.values {
            profile.machine.surroundingsChanged(at: now)
            settle(profile, at: now)
        }
    }

    private func keyringChanged(at now: Moment) {
        keyring = KeyringStanding(.ok, owner: keyring.owner)
        // All of them first: one load reads them all.
        for profile in profiles.values { profile.machine.keyringChanged(at: now) }
        for profile in profiles.values { settle(profile, at: now) }
        load(at: now)
        onChange()
    }

    private func keyringLost(_ failure: Failure, at now: Moment) {
        note(.failed(failure))
        for profile in profiles.values {
            profile.machine.keyringLost(failure, at: now)
            settle(profile, at: now)
        }
        onChange()
    }

    /// Listens for what something waits for, and for nothing else.
    private func chooseWatches(at now: Moment) {
        var awaitsKeyring = false
        var awaitsNetwork = false
        for profile in profiles.values {
            guard case .paused(let pause) = profile.machine.phase else { continue }
            switch pause.failure.kind {
            case .keyringLocked: awaitsKeyring = true
            case .successorUnstored: awaitsKeyring = pause.failure.cause == .keyringLocked
            case .notPresented, .noAnswer, .somebodyInBetween: awaitsNetwork = true
            case .serverError, .throttled, .refused, .notNative, .storageFailed, .lockBusy,
                .keyringUnavailable:
                break
            }
        }
        keyringWatch.isAwaited(awaitsKeyring, at: now.boot)
        network.listen(awaitsNetwork)
    }

    // MARK: Stopping

    /// Starts nothing new; what may be spent already goes on to its end.
    func stop(at now: Moment) {
        guard !isStopping else { return }
        isStopping = true
        for profile in profiles.values {
            // What is in the slot ends with the last holder of its descriptor.
            if !profile.slot.isFull { _ = profile.process?.abandon() }
            if profile.process == nil, !profile.isStarting, profile.slot.isFull {
                rotate(profile, mayPresent: false, at: now)
            }
        }
        _ = loading?.abandon()
        wakeUpIsStale = true
    }

    /// Whether no exchange is at work.
    var isIdle: Bool {
        loading == nil && profiles.values.allSatisfy { $0.process == nil && !$0.isStarting }
    }

    // MARK: Exchanges

    /// Starts what is due for the profile, answers whoever can be, and tells what changed.
    private func settle(_ profile: ServedProfile, at now: Moment) {
        wakeUpIsStale = true
        profile.rendered = nil
        if profile.process == nil, !profile.isStarting, !isStopping {
            proceed(profile, at: now)
        }
        answerWaiters(of: profile, at: now)
        tell(profile, at: now)
        chooseWatches(at: now)
    }

    private func proceed(_ profile: ServedProfile, at now: Moment) {
        while let request = profile.requests.first {
            switch readiness(of: request.kind, profile, at: now) {
            case .ready(let job):
                profile.requests.removeFirst()
                profile.asker = request.client
                return start(job, for: profile, at: now)
            case .refused(let problem):
                profile.requests.removeFirst()
                deliver(request.client, Reply(problem))
                continue
            case .needsToken:
                profile.machine.validityWanted(at: now)
            }
            break
        }
        switch profile.machine.step(at: now.boot) {
        case .nothing: break
        case .load: load(at: now)
        case .rotate(let mayPresent):
            // A machine that goes to sleep now wakes up after the server's grace.
            guard !sleep.isPreparing else { return }
            rotate(profile, mayPresent: mayPresent, at: now)
        }
    }

    private enum Readiness {
        case ready(Job)
        case needsToken
        case refused(Problem)
    }

    /// A question to the server needs an access token; the others need nothing.
    private func readiness(
        of kind: ServedProfile.Request.Kind, _ profile: ServedProfile, at now: Moment
    ) -> Readiness {
        switch kind {
        case .signIn(let body):
            var job = job(.signIn, for: profile)
            let defaults = settings.profiles[profile.name]
            job.secret = body
            job.baseURL = defaults?.url?.text
            job.publishableKey = defaults?.publishableKey
            return .ready(job)
        case .signOut(let isLocal):
            var job = job(.signOut, for: profile)
            job.isLocal = isLocal
            return .ready(job)
        case .identity, .sessions, .revokeSession:
            switch profile.machine.verdict(minimumValidity: nil, at: now) {
            case .wait:
                return .needsToken
            case .refused(let refusal):
                return .refused(Refusals.problem(refusal, profile.name))
            case .token(let token):
                return .ready(question(kind, token, profile))
            }
        }
    }

    private func question(
        _ kind: ServedProfile.Request.Kind, _ token: AccessToken, _ profile: ServedProfile
    ) -> Job {
        var job: Job
        switch kind {
        case .sessions: job = self.job(.sessions, for: profile)
        case .revokeSession(let id):
            job = self.job(.revokeSession, for: profile)
            job.sessionID = id
        case .identity, .signIn, .signOut: job = self.job(.identity, for: profile)
        }
        job.secret = token.value
        job.baseURL = profile.machine.session?.baseURL
        return job
    }

    private func rotate(_ profile: ServedProfile, mayPresent: Bool, at now: Moment) {
        var job = job(.rotate, for: profile)
        job.known = profile.machine.session?.position
        job.mayPresent = mayPresent
        start(job, for: profile, at: now)
    }

    private func job(_ kind: JobKind, for profile: ServedProfile) -> Job {
        job(kind, profiles: [profile.name])
    }

    private func job(_ kind: JobKind, profiles: [ProfileName]) -> Job {
        var job = Job(
            kind, profiles: profiles, machine: place.machine, boot: place.boot,
            stateDirectory: place.stateDirectory.path,
            runtimeDirectory: place.stateDirectory.runtimePath)
        job.caFile = settings.caFile
        job.proxy = settings.proxy?.text
        return job
    }

    /// Starts an exchange once the machine is held awake, if it can be.
    private func start(_ job: Job, for profile: ServedProfile, at now: Moment) {
        switch job.kind {
        case .rotate, .signIn, .signOut:
            profile.isStarting = true
            sleep.hold { [weak self, weak profile] in
                guard let self, let profile else { return }
                profile.isStarting = false
                if isStopping && !profile.slot.isFull { return sleep.release() }
                // It was asked for while the machine began to go to sleep.
                if sleep.isPreparing, job.kind == .rotate { return sleep.release() }
                profile.holdsAwake = true
                spawn(job, for: profile, at: .now)
            }
        case .load, .identity, .sessions, .revokeSession:
            spawn(job, for: profile, at: now)
        }
    }

    private func spawn(_ job: Job, for profile: ServedProfile, at now: Moment) {
        profile.machine.exchangeBegan(job.kind, at: now.boot)
        wakeUpIsStale = true
        do throws(SystemError) {
            profile.process = try ExchangeProcess(
                job, executable: place.executable, slot: profile.slot, loop: loop
            ) { [unowned self, unowned profile] news in
                heard(news, of: profile)
            }
        } catch {
            Journal.error("The exchange cannot be started", ("error", "\(error)"))
            letSleep(profile)
            profile.machine.exchangeDied("\(error)", at: now, draw: Agent.draw())
            answerAsker(
                of: profile, Refusals.problem(Failure(.notPresented, "\(error)"), profile.name))
        }
    }

    private func letSleep(_ profile: ServedProfile) {
        guard profile.holdsAwake else { return }
        profile.holdsAwake = false
        sleep.release()
    }

    private func heard(_ news: ExchangeProcess.News, of profile: ServedProfile) {
        let now = Moment.now
        switch news {
        case .report(.progress(let progress)):
            profile.machine.exchangeProgressed(progress, at: now)
        case .report(.keyring(let standing)):
            keyring = standing
        case .report(.ended(_, let outcome)):
            ended(outcome, of: profile, at: now)
        case .ended(let words):
            profile.process = nil
            letSleep(profile)
            if case .exchanging = profile.machine.phase {
                died(words, profile, at: now)
            }
        }
        if isGone(profile) {
            forget(profile, at: now)
        } else {
            settle(profile, at: now)
        }
        onChange()
    }

    private func died(_ words: String, _ profile: ServedProfile, at now: Moment) {
        Journal.warning(
            "An exchange ended without a report", ("profile", profile.name.text), ("end", words))
        profile.machine.exchangeDied(words, at: now, draw: Agent.draw())
        answerAsker(
            of: profile, Refusals.problem(Failure(.noAnswer, words), profile.name))
        if case .paused = profile.machine.phase { noteAttempt(profile) }
    }

    /// The machine learns first; then whoever asked for the exchange, and everybody else.
    private func ended(_ outcome: ExchangeOutcome, of profile: ServedProfile, at now: Moment) {
        guard case .exchanging(let exchange) = profile.machine.phase else { return }
        let before = profile.machine.session?.position
        profile.machine.exchangeEnded(outcome, at: now, draw: Agent.draw())
        durations[exchange.job, default: .exchanges].observe(now.boot - exchange.began)
        note(outcome)
        if exchange.job == .rotate || exchange.job == .load { noteAttempt(profile) }
        if exchange.job == .rotate { count(outcome, profile) }
        if let session = profile.machine.session { profile.account = session.account }
        report(outcome, exchange.job, profile, before)
        answerAsker(of: profile, outcome, exchange.job, at: now)
    }

    private func noteAttempt(_ profile: ServedProfile) {
        for index in profile.waiters.indices { profile.waiters[index].sawAttempt = true }
    }

    /// What an outcome says of the keyring.
    private func note(_ outcome: ExchangeOutcome) {
        let failure: Failure
        switch outcome {
        case .failed(let cause): failure = cause
        case .session(let report):
            guard let cause = report.storeFailure else {
                keyring = KeyringStanding(.ok, owner: keyring.owner)
                return
            }
            failure = cause
        case .tooEarly, .signInRequired, .signedOut, .rejected, .challenged, .document: return
        }
        switch failure.kind {
        case .keyringLocked: keyring = KeyringStanding(.locked, owner: keyring.owner)
        case .keyringUnavailable: keyring = KeyringStanding(.unavailable, owner: keyring.owner)
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
            .notNative, .storageFailed, .successorUnstored, .lockBusy:
            break
        }
    }

    private func count(_ outcome: ExchangeOutcome, _ profile: ServedProfile) {
        let name: String
        switch outcome {
        case .session(let report): name = report.storeFailure == nil ? "ok" : "unstored"
        case .tooEarly: name = "too_early"
        case .failed(let failure): name = Refusals.code(of: failure).rawValue
        case .signInRequired(let reason, _): name = reason.rawValue
        case .signedOut, .rejected, .challenged, .document: return
        }
        rotations[profile.name, default: [:]][name, default: 0] += 1
    }

    private func report(
        _ outcome: ExchangeOutcome, _ job: JobKind, _ profile: ServedProfile, _ before: Generation?
    ) {
        let name = profile.name.text
        switch outcome {
        case .session(let session):
            let generation = String(session.header.generation)
            if let failure = session.storeFailure {
                Journal.warning(
                    "The keyring does not take the next token; trying on", ("profile", name),
                    ("generation", generation), ("error", failure.detail))
            } else if job == .rotate, session.header.position != before {
                Journal.debug("Rotated", ("profile", name), ("generation", generation))
            } else if job == .signIn {
                Journal.info("Signed in", ("profile", name))
            }
        case .failed(let failure):
            Journal.warning(
                "An exchange failed", ("profile", name),
                ("code", Refusals.code(of: failure).rawValue), ("error", failure.detail))
        case .signInRequired(let reason, let words):
            Journal.error(
                "A new sign-in is needed", ("profile", name), ("reason", reason.rawValue),
                ("error", words))
        case .signedOut where job == .signOut:
            Journal.info("Signed out", ("profile", name))
        case .rejected(let rejection):
            Journal.info(
                "A sign-in was refused", ("profile", name), ("error", rejection.detail))
        case .signedOut, .tooEarly, .challenged, .document:
            break
        }
    }

    // MARK: Loading

    /// Reads every profile that has not been read, in one exchange; the first one also finds the
    /// profiles that only the keyring knows.
    private func load(at now: Moment) {
        guard loading == nil, !isStopping else { return }
        let unread = profiles.values.filter {
            $0.process == nil && !$0.isStarting && $0.machine.step(at: now.boot) == .load
        }
        guard !unread.isEmpty || !hasSearched else { return }
        for profile in unread { profile.machine.exchangeBegan(.load, at: now.boot) }
        wakeUpIsStale = true
        do throws(SystemError) {
            let process = try ExchangeProcess(
                job(.load, profiles: unread.map(\.name).sorted()),
                executable: place.executable, slot: nil, loop: loop
            ) { [unowned self] news in
                heardLoading(news)
            }
            loading = process
            for profile in unread { profile.process = process }
        } catch {
            Journal.error("The exchange cannot be started", ("error", "\(error)"))
            loadingEnded("\(error)", of: unread, at: now)
        }
    }

    private func heardLoading(_ news: ExchangeProcess.News) {
        let now = Moment.now
        switch news {
        case .report(.keyring(let standing)):
            keyring = standing
        case .report(.progress):
            break  // A load spends nothing and repeats nothing.
        case .report(.ended(let name, let outcome)):
            loaded(name, outcome, at: now)
        case .ended(let words):
            let process = loading
            loading = nil
            let shared = profiles.values.filter { $0.process === process }
            for profile in shared { profile.process = nil }
            loadingEnded(words, of: shared, at: now)
        }
        onChange()
    }

    private func loaded(_ name: ProfileName, _ outcome: ExchangeOutcome, at now: Moment) {
        if let profile = profiles[name] {
            // One that was signed in while the keyring was searched knows better.
            guard profile.process === loading else { return }
            ended(outcome, of: profile, at: now)
            settle(profile, at: now)
            return
        }
        switch outcome {
        case .signedOut: return
        case .session, .tooEarly, .failed, .signInRequired, .rejected, .challenged, .document:
            break
        }
        guard profiles.count < Limits.profiles, let found = served(name, account: nil) else {
            return
        }
        found.machine.exchangeBegan(.load, at: now.boot)
        found.process = loading
        ended(outcome, of: found, at: now)
        settle(found, at: now)
    }

    private func loadingEnded(_ words: String, of shared: [ServedProfile], at now: Moment) {
        hasSearched = true
        // All of them first: settling one may begin the next load, of the others too.
        for profile in shared {
            if case .exchanging(let exchange) = profile.machine.phase, exchange.job == .load {
                died(words, profile, at: now)
            }
        }
        for profile in shared {
            if isGone(profile) {
                forget(profile, at: now)
            } else {
                settle(profile, at: now)
            }
        }
        let waiting = strangers
        strangers = []
        for (client, route, deadline) in waiting {
            let left = max(.zero, deadline - now.boot)
            if let reply = handle(route.shortened(to: left), body: nil, from: client) {
                deliver(client, reply)
            }
        }
        load(at: now)
    }

    // MARK: Answers

    private func answerAsker(
        of profile: ServedProfile, _ outcome: ExchangeOutcome, _ job: JobKind, at now: Moment
    ) {
        guard let client = profile.asker else { return }
        profile.asker = nil
        deliver(client, reply(to: outcome, job, profile, at: now))
    }

    private func answerAsker(of profile: ServedProfile, _ problem: Problem) {
        guard let client = profile.asker else { return }
        profile.asker = nil
        deliver(client, Reply(problem))
    }

    private func reply(
        to outcome: ExchangeOutcome, _ job: JobKind, _ profile: ServedProfile, at now: Moment
    ) -> Reply {
        switch outcome {
        case .session, .tooEarly:
            return .profile(profile.view(at: now))
        case .failed(let failure):
            return Reply(
                job == .signOut
                    ? Refusals.signOutFailed(failure, profile.name)
                    : Refusals.problem(failure, profile.name))
        case .signInRequired(let reason, _):
            return Reply(Refusals.signInRequired(reason, profile.name))
        case .signedOut:
            return .done
        case .rejected(let rejection):
            return Reply(Refusals.problem(rejection, profile.name))
        case .challenged:
            return Reply(
                Problem(
                    .credentialsRejected,
                    "the server asks for a second factor, which this version cannot answer",
                    profile: profile.name))
        case .document(let document):
            return document.count == 0
                ? .done : Reply(status: 200, body: .secret(document))
        }
    }

    private func answerWaiters(of profile: ServedProfile, at now: Moment) {
        guard !profile.waiters.isEmpty else { return }
        var waiting: [ServedProfile.Waiter] = []
        let waiters = profile.waiters
        profile.waiters = []
        for var waiter in waiters {
            if let reply = reply(to: &waiter, of: profile, at: now) {
                deliver(waiter.client, reply)
            } else {
                waiting.append(waiter)
            }
        }
        profile.waiters = waiting + profile.waiters
    }

    private func reply(
        to waiter: inout ServedProfile.Waiter, of profile: ServedProfile, at now: Moment
    ) -> Reply? {
        switch waiter.kind {
        case .token(let validity, let asText):
            return currentToken(
                profile, minimumValidity: validity, asText: asText, at: now)
        case .rotation(let generation, let wanted):
            if generation == nil, case .resting = profile.machine.phase {
                // Nothing had been read when it was asked for: what has been now is replaced.
                let present = profile.machine.session?.position
                if wanted == nil || wanted == present?.number {
                    waiter.kind = .rotation(of: present, onlyIf: wanted)
                    return reply(toRotationOf: present, waiter, profile, at: now)
                }
            }
            return reply(toRotationOf: generation, waiter, profile, at: now)
        }
    }

    private func reply(
        toRotationOf generation: Generation?, _ waiter: ServedProfile.Waiter,
        _ profile: ServedProfile, at now: Moment
    ) -> Reply? {
        switch profile.machine.phase {
        case .unread, .exchanging:
            return nil
        case .ended(let reason):
            return Reply(Refusals.signInRequired(reason, profile.name))
        case .paused(let pause):
            guard waiter.sawAttempt else { return nil }
            return Reply(
                Refusals.problem(
                    pause.failure, profile.name, retryAfter: pause.until - now.boot))
        case .resting:
            // The exchange that was at work when it was asked for may have been one that only
            // looked. What may not rotate now, by floor or hold, is answered as it is.
            let isNew = profile.machine.session?.position != generation
            guard isNew || !profile.machine.rotationForced(at: now) else { return nil }
            return currentToken(profile, at: now)
        }
    }

    /// What a client that waits is told now; nil if it goes on waiting.
    private func currentToken(
        _ profile: ServedProfile, minimumValidity: TimeSpan? = nil, asText: Bool = false,
        at now: Moment
    ) -> Reply? {
        let verdict = profile.machine.verdict(minimumValidity: minimumValidity, at: now)
        if let reply = reply(verdict, profile, asText: asText, at: now) { return reply }
        profile.machine.validityWanted(at: now)
        return nil
    }

    /// A verdict as a reply; nil for one that tells to wait.
    private func reply(
        _ verdict: RotationMachine.Verdict, _ profile: ServedProfile, asText: Bool, at now: Moment
    ) -> Reply? {
        switch verdict {
        case .token(let token):
            profile.tokenReply(token, asText: asText, boot: place.boot, at: now)
        case .refused(let refusal):
            Reply(Refusals.problem(refusal, profile.name))
        case .wait:
            nil
        }
    }

    // MARK: Profiles

    private func served(
        _ name: ProfileName, account: KnownSignIns.Account?, isNew: Bool = false
    ) -> ServedProfile? {
        if let profile = profiles[name] { return profile }
        do throws(SystemError) {
            let profile = ServedProfile(
                name, slot: try SuccessorSlot(), boot: place.boot,
                mode: settings.mode(of: name), account: account)
            if isNew { profile.machine.becomeUnknown() }
            profiles[name] = profile
            wakeUpIsStale = true
            return profile
        } catch {
            Journal.error("The successor slot cannot be made", ("error", "\(error)"))
            return nil
        }
    }

    /// Whether nothing is signed in under the name any more.
    private func isGone(_ profile: ServedProfile) -> Bool {
        profile.machine.phase == .ended(.signedOut) && profile.requests.isEmpty
            && profile.process == nil
    }

    private func forget(_ profile: ServedProfile, at now: Moment) {
        answerWaiters(of: profile, at: now)
        tell(profile, at: now)
        profiles[profile.name] = nil
        rotations[profile.name] = nil
        wakeUpIsStale = true
    }

    /// Tells subscribers what they have not been told.
    private func tell(_ profile: ServedProfile, at now: Moment) {
        guard !profile.machine.isUnknown || profile.published != nil else { return }
        let state = profile.machine.state(at: now)
        let generation = profile.machine.session?.position
        let failure = profile.machine.lastFailure?.failure
        let last = profile.published
        guard last?.state != state || last?.generation != generation || last?.failure != failure
        else { return }
        profile.published = (state, generation, failure)
        let listeners = subscribers.filter { $0.value == nil || $0.value == profile.name }
        guard !listeners.isEmpty else { return }
        if last?.generation != generation, let generation, let life = profile.machine.access?.life {
            let event = events.rotated(
                profile.name, generation: generation.number, expiresAt: life.expiresAt,
                refreshAt: profile.refreshAt(now) ?? life.expiresAt)
            for client in listeners.keys { publish(client, event, "rotated \(profile.name)") }
        }
        let event = events.state(profile.view(at: now))
        for client in listeners.keys { publish(client, event, "state \(profile.name)") }
    }

    private static func draw() -> Double {
        Double(Randomness.word() >> 11) / Double(1 << 53)
    }
}

extension Route {
    /// The same request with less time to wait.
    fileprivate func shortened(to timeout: TimeSpan) -> Route {
        switch self {
        case .token(let name, let validity, _, let asText):
            .token(name, minimumValidity: validity, timeout: timeout, asText: asText)
        case .refresh(let name, let generation, _):
            .refresh(name, ifGeneration: generation, timeout: timeout)
        case .profiles, .profile, .logIn, .multiFactor, .logOut, .identity, .sessions,
            .revokeSession, .events, .status, .metrics:
            self
        }
    }
}
