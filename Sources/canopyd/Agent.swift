internal import AgentCore
internal import LinuxSystem

/// The profiles being served: the only owner of state.
///
/// Every event changes one machine and is followed by ``settle(_:at:)``, which starts what is due
/// and answers whoever can be answered. Nothing is scheduled: what ``prepareToWait()``
/// returns follows from the state.
final class Agent {
    /// Sends a reply to a client that was told to wait.
    var deliver: (ClientID, Reply) -> Void = { _, _ in }

    /// Who a client is, and how it asks; nil once it is gone.
    var caller: (ClientID) -> (Caller, AccessPolicy.Way)? = { _ in nil }

    /// The number of open connections.
    var connections: () -> Int = { 0 }

    /// What was asked so far, and how it was answered.
    var statistics: () -> RequestStatistics = { RequestStatistics() }

    /// Called once a turn in which a state may have changed, for the service manager's status line.
    var onChange: () -> Void = {}

    var settings: Settings {
        didSet {
            let now = Moment.now
            for profile in profiles.values {
                if settings.policies[profile.name] != oldValue.policies[profile.name] {
                    enforcePolicy(on: profile)
                }
                profile.machine.modeChanged(
                    to: settings.mode(of: profile.name), at: now, draw: Agent.draw())
                settle(profile, at: now)
            }
        }
    }

    let subscribers = Subscribers()
    var profiles: [ProfileName: ServedProfile] = [:] {
        didSet { lastAsked = nil }
    }

    /// Whose token was asked for last: nearly always the next one's too, and to compare the name is a
    /// tenth of hashing it.
    private var lastAsked: ServedProfile?

    var keyring = KeyringStanding(.ok, owner: nil)

    /// Who kept the secrets last: also while nobody does, since the session is with that program.
    private(set) var keeper: KeyringOwner?
    var tally = Tally()
    var recentCallers = RecentCallers()

    /// Clients that asked for a profile that is not known, while the keyring is searched.
    var strangers: [(client: ClientID, route: Route, deadline: BootTime)] = []
    var search = Search.due
    var loading: ExchangeProcess?
    var isStopping = false

    /// Set by everything that may move what ``prepareToWait()`` returns.
    var wakeUpIsStale = true

    let startedAt = WallTime.now
    let place: Place

    /// Where ``settings`` come from, for the command that adds to them.
    let configurationFile: String?
    let loop: EventLoop
    let sleep: SleepInhibitor
    private let keyringWatch: KeyringWatch
    private let network: NetworkWatch
    let notifications: NotificationService

    /// The slots that an earlier canopyd left with the service manager and no profile has taken yet.
    private var inherited: [ProfileName: SuccessorSlot]
    private var store: DescriptorStore
    private var lastProfileNumber: UInt32 = 0
    private var cachedWakeUp: BootTime?

    init(
        _ place: Place, settings: Settings, configurationFile: String?, loop: EventLoop,
        inherited: [ProfileName: SuccessorSlot]
    ) {
        self.place = place
        self.configurationFile = configurationFile
        self.inherited = inherited
        store = DescriptorStore(keeping: Set(inherited.keys))
        self.settings = settings
        self.loop = loop
        sleep = SleepInhibitor(on: loop)
        keyringWatch = KeyringWatch(on: loop)
        network = NetworkWatch(on: loop)
        notifications = NotificationService(recordPath: place.noticeRecord, boot: place.boot)
        sleep.onResume = { [unowned self] in resumed(at: .now) }
        sleep.onWakeUpChange = { [unowned self] in wakeUpIsStale = true }
        network.onChange = { [unowned self] in surroundingsChanged(at: .now) }
        keyringWatch.onHint = { [unowned self] in keyringHinted(at: .now) }
        keyringWatch.onPlan = { [unowned self] in wakeUpIsStale = true }
        keyringWatch.onLoss = { [unowned self] in keyringLost($0, at: .now) }
        keyringWatch.onConnect = { [unowned self] in notifications.connected(keyringWatch.bus) }
        notifications.onWakeUpChange = { [unowned self] in wakeUpIsStale = true }
        notifications.connected(keyringWatch.bus)
    }

    /// Finds the profiles that the state directory knows, and starts reading them.
    func start(at now: Moment) {
        do throws(SystemError) {
            for name in try place.stateDirectory.profiles().prefix(Limits.profiles) {
                adopt(name)
            }
        } catch {
            Journal.write(.stateUnreadable, (.error, "\(error)"))
        }
        for (name, slot) in inherited {
            if slot.isFull {
                // Its state cannot be read, or is gone: the exchange says which.
                _ = served(name, account: nil)
            } else {
                store.remove(name)
            }
        }
        inherited = [:]
        for profile in profiles.values { settle(profile, at: now) }
        load(at: now)
    }

    private func adopt(_ name: ProfileName) {
        do throws(StateDirectory.Unreadable) {
            guard let signIns = try place.stateDirectory.signIns(of: name),
                signIns.current != nil || !signIns.pending.isEmpty
            else { return }
            let profile = served(name, account: signIns.account)
            profile?.lastGeneration = signIns.lastGeneration
        } catch {
            // It is served all the same, and says what is wrong when it is asked for.
            Journal.write(.profileUnreadable, (.error, "\(error)"))
            _ = served(name, account: nil)
        }
    }

    // MARK: Time

    /// Sees to what concerns all profiles together, once for all that have changed in a turn: a look
    /// at each of them whenever one changes is a million for a thousand.
    ///
    /// Returns when something is to be done unasked next; nil for never.
    func prepareToWait() -> BootTime? {
        if wakeUpIsStale { lookAtAll() }
        return cachedWakeUp
    }

    /// Apart, so that a turn in which nothing has changed, a token's, costs a comparison.
    private func lookAtAll() {
        while wakeUpIsStale {
            wakeUpIsStale = false
            let now = Moment.now
            chooseWatches(at: now)
            // While profiles are read they come one by one, and nobody is told before the last.
            if loading == nil { notifications.settle(at: now.boot) }
            var earliest = strangers.map(\.deadline).min()
            for profile in profiles.values {
                guard
                    let time = profile.wakeUp(
                        mayLoad: loading == nil && !isStopping,
                        mayRotate: !sleep.isPreparing && !isStopping, at: now.boot)
                else { continue }
                earliest = min(time, earliest ?? time)
            }
            for time in [
                loading?.deadline, keyringWatch.wakeUp, sleep.wakeUp, notifications.wakeUp,
            ] {
                if let time { earliest = min(time, earliest ?? time) }
            }
            cachedWakeUp = earliest
        }
        onChange()
    }

    /// Does what is due.
    func wake(at now: Moment) {
        wakeUpIsStale = true
        loading?.expire(at: now.boot)
        keyringWatch.wake(at: now.boot)
        sleep.wake(at: now.boot)
        notifications.wake(at: now.boot)
        for stranger in strangers where stranger.deadline <= now.boot {
            deliver(stranger.client, Reply(Refusals.timeout(nil)))
        }
        strangers.removeAll { $0.deadline <= now.boot }
        for profile in profiles.values {
            profile.process?.expire(at: now.boot)
            expire(profile, at: now)
            if isGone(profile), !profile.isStarting {
                forget(profile, at: now)
            } else {
                settle(profile, at: now)
            }
        }
        load(at: now)
    }

    private func expire(_ profile: ServedProfile, at now: Moment) {
        for (client, reply) in profile.takeLate(at: now) {
            answer(client, reply, of: profile, at: now)
        }
        profile.forgetExpiredChallenges(at: now.boot)
        for request in profile.requests where request.deadline <= now.boot {
            deliver(request.client, Reply(Refusals.timeout(profile.name)))
        }
        profile.requests.removeAll { $0.deadline <= now.boot }
    }

    // MARK: Surroundings

    private func resumed(at now: Moment) {
        for profile in profiles.values {
            profile.machine.resumed(at: now)
            settle(profile, at: now)
        }
    }

    /// The network changed.
    private func surroundingsChanged(at now: Moment) {
        for profile in profiles.values {
            profile.machine.surroundingsChanged(at: now)
            settle(profile, at: now)
        }
    }

    /// Something happened to the keyring: what it was, reading all of it tells.
    func keyringHinted(at now: Moment) {
        search = .due
        // All of them first: one load reads them all.
        for profile in profiles.values {
            profile.machine.keyringChanged(at: now)
            profile.machine.keyringDoubted()
        }
        for profile in profiles.values { settle(profile, at: now) }
        load(at: now)
    }

    private func keyringLost(_ failure: Failure, at now: Moment) {
        keyring = keyring.after(failure)
        for profile in profiles.values {
            profile.machine.keyringLost(failure, at: now)
            settle(profile, at: now)
        }
    }

    /// Listens for what something waits for, and for nothing else.
    private func chooseWatches(at now: Moment) {
        var need = KeyringWatch.Need.nothing
        var awaitsNetwork = false
        for profile in profiles.values {
            guard let failure = profile.machine.obstacle else { continue }
            switch failure.cause ?? failure.kind {
            case .keyringLocked: need = .unlock
            case .keyringUnavailable: if need == .nothing { need = .arrival }
            case .notPresented, .noAnswer, .somebodyInBetween: awaitsNetwork = true
            case .serverError, .throttled, .refused, .notNative, .storageFailed, .lockBusy,
                .successorUnstored, .exchangeFailed:
                break
            }
        }
        keyringWatch.wait(for: need, at: now.boot)
        network.listen(awaitsNetwork)
    }

    /// Takes what an exchange says of the keyring.
    func heard(_ standing: KeyringStanding) {
        keyring = standing
        if let owner = standing.owner { keeper = KeyringOwner(process: owner) }
        if let collection = standing.collection { keyringWatch.found(locked: collection) }
    }

    /// A client asks for a token: if the keyring is what keeps it from one, it is looked at now.
    func urge(_ profile: ServedProfile, at now: Moment) {
        guard profile.machine.obstacle != nil else { return }
        keyringWatch.urge(at: now.boot)
        wakeUpIsStale = true
    }

    // MARK: Stopping

    /// Starts nothing new; what may be spent already goes on to its end.
    func stop(at now: Moment) {
        guard !isStopping else { return }
        isStopping = true
        sleep.stopWaiting()
        for profile in profiles.values {
            // What is in the slot ends with the last holder of its descriptor. A rotation stores it, and
            // all else only holds up the one that will.
            if let process = profile.process, !profile.slot.isFull || process.kind != .rotate {
                _ = process.abandon()
            }
            settle(profile, at: now)
        }
        for stranger in strangers { deliver(stranger.client, Reply(Refusals.stopping(nil))) }
        strangers = []
        _ = loading?.abandon()
        wakeUpIsStale = true
    }

    /// Whether no exchange is at work.
    var isIdle: Bool {
        loading == nil && profiles.values.allSatisfy { $0.process == nil && !$0.isStarting }
    }

    /// Takes back from the service manager the slots in which nothing waits, of a canopyd that ends.
    func releaseEmptySlots() {
        for profile in profiles.values {
            let slot = profile.slot
            if DescriptorAllowance.isTakenBack(isKept: slot.isKept, isFull: slot.isFull) {
                store.remove(profile.name)
            }
        }
    }

    // MARK: Profiles

    /// The profile under the name, made if there is none; nil if that fails, which is logged.
    func served(
        _ name: ProfileName, account: KnownSignIns.Account?, isNew: Bool = false
    ) -> ServedProfile? {
        if let profile = profiles[name] { return profile }
        do throws(SystemError) {
            let slot = try slot(of: name)
            lastProfileNumber += 1
            let profile = ServedProfile(
                name, number: lastProfileNumber, slot: slot, boot: place.boot,
                mode: settings.mode(of: name), account: account,
                keeper: { [unowned self] in keeper })
            if isNew { profile.machine.becomeUnknown() }
            profiles[name] = profile
            wakeUpIsStale = true
            return profile
        } catch {
            Journal.write(.slotUnmade, (.error, "\(error)"))
            return nil
        }
    }

    private func slot(of name: ProfileName) throws(SystemError) -> SuccessorSlot {
        if let slot = inherited.removeValue(forKey: name) { return slot }
        let slot = try SuccessorSlot()
        slot.isKept = store.add(slot, of: name)
        return slot
    }

    /// The profile that there is under the name.
    func profile(askedFor name: ProfileName) -> ServedProfile? {
        if let lastAsked, lastAsked.name == name { return lastAsked }
        lastAsked = profiles[name]
        return lastAsked
    }

    /// The profiles whose next token the keyring has not taken.
    var unstored: [ProfileName] {
        profiles.values.filter { $0.slot.isFull }.map(\.name).sorted()
    }

    /// Whether nothing is signed in under the name any more.
    func isGone(_ profile: ServedProfile) -> Bool {
        profile.machine.phase == .ended(.signedOut) && profile.requests.isEmpty
            && profile.process == nil && profile.challenges.isEmpty
    }

    func forget(_ profile: ServedProfile, at now: Moment) {
        answerWaiters(of: profile, at: now)
        subscribers.tell(profile, at: now)
        notifications.saw(profile.name, .settled, at: now.boot)
        profiles[profile.name] = nil
        tally.forget(profile.name)
        if profile.slot.isKept { store.remove(profile.name) }
        wakeUpIsStale = true
    }

    /// A number from 0 up to 1.
    static func draw() -> Double {
        Double(Randomness.word() >> 11) / Double(1 << 53)
    }
}
