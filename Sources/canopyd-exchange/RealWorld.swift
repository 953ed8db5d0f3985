internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The real things that an exchange of one profile touches.
final class RealWorld: ExchangeWorld {
    typealias Interruption = Never

    /// How long the lock is waited for: an exchange that is still at work is in its quick
    /// repetitions then, and the caller does better to come again.
    private static let lockPatience = TimeSpan.seconds(15)

    let boot: BootID
    let memory: SecretMemory
    private let job: Job
    private let profile: ProfileName
    private let channel: Channel
    private let slot: MemoryFile?
    private let state: StateDirectory
    private let client: CanopyClient
    /// The connection to the keyring; nil once it turned out to lead nowhere.
    private var keyring: Reading<SecretServiceConnection>?
    private let proof: SignInProof?
    private var store: SecretServiceStore?
    private var profileLock: FileLock?

    /// The slot of a profile whose descriptor was not passed lives in this process alone.
    init(
        _ job: Job, profile: ProfileName, channel: Channel, slot: consuming MemoryFile?,
        keyring: Reading<SecretServiceConnection>, proof: SignInProof? = nil,
        memory: SecretMemory
    ) {
        self.job = job
        self.profile = profile
        self.channel = channel
        self.slot = slot
        self.keyring = keyring
        self.proof = proof
        self.memory = memory
        boot = job.boot
        state = StateDirectory(path: job.stateDirectory, runtimePath: job.runtimeDirectory)
        client = CanopyClient(caFile: job.caFile, proxy: job.proxy, memory: memory)
    }

    // MARK: Time and chance

    func now() -> Moment { .now }

    func draw() -> Double {
        Double(Randomness.word() >> 11) / Double(1 << 53)
    }

    func pause(for span: TimeSpan) {
        let end = BootTime.now + span
        // Short sleeps against the boot clock: a machine that slept meanwhile has waited enough.
        while true {
            let left = end - .now
            guard left > .zero else { return }
            let step = min(left.nanoseconds, 250_000_000)
            var time = timespec(tv_sec: 0, tv_nsec: Int(step))
            nanosleep(&time, nil)
        }
    }

    func pause(awakeFor span: TimeSpan) {
        let (seconds, rest) = span.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
        var left = timespec()
        // The kernel counts it on a clock that stands still while the machine sleeps.
        while nanosleep(&time, &left) == -1, errno == EINTR { time = left }
    }

    // MARK: Lock, slot, state directory

    func lock() -> Bool {
        do throws(SystemError) {
            try Directory.make(state.path)
            profileLock = try FileLock.take(
                state.lockPath(profile), patience: RealWorld.lockPatience)
        } catch {
            lockFailure = Failure(.storageFailed, "\(error)")
            return true
        }
        return isLocked
    }

    /// Why the lock could not even be asked for: told by the first step that needs the directory.
    private var lockFailure: Failure?

    private var isLocked: Bool {
        switch profileLock {
        case .some: true
        case .none: false
        }
    }

    func readSlot() -> SlotContents {
        guard let contents = withSlot({ slot throws(SystemError) in try slot.read(in: memory) })
        else { return .empty }
        if case .session = contents {
            Signals.ignoreUntilTheEnd()
            Unresponsive.holdSuccessor()
        }
        return contents
    }

    func fillSlot(_ session: StoredSession) -> Bool {
        Unresponsive.tellOfSlowness(
            as: Failure(
                .successorUnstored, "the keyring takes its time to store the next token",
                cause: .keyringUnavailable))
        return writeSlot(session)
    }

    private func writeSlot(_ session: StoredSession) -> Bool {
        withSlot { slot throws(SystemError) in
            try slot.fill(session, in: memory)
            return true
        } ?? false
    }

    func emptySlot() {
        _ = withSlot { slot throws(SystemError) in try slot.empty() }
    }

    var isSlotKept: Bool { job.isSlotKept || channel.isHeard }

    /// nil without a slot, or where the kernel refuses: then the successor lives in this process
    /// alone, which the caller treats as having no slot.
    private func withSlot<Value>(
        _ body: (borrowing MemoryFile) throws(SystemError) -> Value
    ) -> Value? {
        switch slot {
        case .some(let slot):
            do throws(SystemError) {
                return try body(slot)
            } catch {
                return nil
            }
        case .none:
            return nil
        }
    }

    func readState() -> Reading<StateContents> {
        if let lockFailure { return .failed(lockFailure) }
        let written: (signIns: KnownSignIns, isCopy: Bool)?
        do throws(StateDirectory.Unreadable) {
            written = try state.identifiedSignIns(of: profile)
        } catch {
            return .failed(Failure(.storageFailed, "\(error)"))
        }
        do throws(SystemError) {
            return .found(
                StateContents(
                    signIns: written?.signIns, runtimeMarks: state.runtimeMarks(of: profile),
                    // A restored file is as good as a restored directory: nothing fits it.
                    anchor: written?.isCopy == true ? nil : try state.anchor()))
        } catch {
            return .failed(Failure(.storageFailed, "\(error)"))
        }
    }

    func writeSignIns(_ signIns: KnownSignIns) -> Failure? {
        // The first step that is not to be cut off from the next ones.
        Signals.ignoreUntilTheEnd()
        do throws(SystemError) {
            try state.write(signIns, of: profile)
            return nil
        } catch {
            return Failure(.storageFailed, "\(error)")
        }
    }

    func makeAnchor() -> Reading<Anchor> {
        if let lockFailure { return .failed(lockFailure) }
        do throws(SystemError) {
            return .found(try state.makeAnchor())
        } catch {
            return .failed(Failure(.storageFailed, "\(error)"))
        }
    }

    // MARK: Keyring

    func readItem(knowing signIns: KnownSignIns?) -> Reading<ItemContents> {
        switch opened() {
        case .found(let store):
            let item = store.read(knowing: signIns)
            if case .failed = item { reconsiderConnection() }
            return item
        case .failed(let failure):
            return .failed(failure)
        }
    }

    func writeItem(_ session: StoredSession) -> Failure? {
        switch opened() {
        case .found(let store):
            let failure = write(session, into: store)
            if failure != nil { reconsiderConnection() }
            return failure
        case .failed(let failure):
            return failure
        }
    }

    private func write(_ session: StoredSession, into store: SecretServiceStore) -> Failure? {
        if !store.hasRead {
            // A connection of its own: what it is to rewrite has to be found again.
            let signIns = KnownSignIns(current: session.header.signIn)
            if case .failed(let failure) = store.read(knowing: signIns) { return failure }
        }
        return store.write(session)
    }

    /// A keyring that was started anew, or is on another bus by now, is not reached by the connection
    /// to the old one.
    private func reconsiderConnection() {
        // What is damaged is so on every connection, and is the item to be deleted.
        guard case .found(let connection) = keyring, connection.hasFailed else { return }
        store = nil
        keyring = nil
        SecretServiceConnection.forgetClosed()
    }

    func syncKeyring() -> Failure? {
        switch opened() {
        case .found(let store): store.sync()
        case .failed(let failure): failure
        }
    }

    func deleteItem() -> Failure? {
        switch opened() {
        case .found(let store): store.delete()
        case .failed(let failure): failure
        }
    }

    var holdsUnreadableItem: Bool { store?.holdsUnreadableItem ?? false }

    var keyringWritesAtOnce: Bool {
        switch keyring {
        case .found(let connection): connection.keeper.writesAtOnce
        case .failed, nil: true
        }
    }

    private func opened() -> Reading<SecretServiceStore> {
        if let store { return .found(store) }
        let connected = keyring ?? Exchange.connect(job, channel, isAnew: true)
        switch connected {
        case .failed(let failure):
            keyring = nil
            return .failed(failure)
        case .found(let connection):
            keyring = connected
            let made = SecretServiceStore(
                connection, profile: profile, machine: job.machine, memory: memory)
            store = made
            return .found(made)
        }
    }

    // MARK: Server

    func present(_ refreshToken: Secret, to baseURL: String) -> Transmission {
        send(baseURL) { .refresh(refreshToken, at: $0, memory: memory) }
    }

    func signIn(at baseURL: String, publishableKey: String) -> Transmission {
        switch proof {
        case .none:
            preconditionFailure("a sign-in without a proof")
        case .password(let credentials):
            return send(baseURL) {
                .signIn(credentials, publishableKey: publishableKey, at: $0, memory: memory)
            }
        case .secondFactor(let factor, let code, let challenge):
            return send(baseURL) {
                .prove(factor, code: code, challenge: challenge, at: $0, memory: memory)
            }
        }
    }

    func signOut(
        _ accessToken: Secret, naming refreshToken: Secret?, at baseURL: String
    ) -> Transmission {
        send(baseURL) {
            .signOut(accessToken, naming: refreshToken, at: $0, memory: memory)
        }
    }

    /// Sends a request to a server whose URL was checked when it was stored, and is again: the
    /// keyring is other programs' to write, too.
    func send(_ baseURL: String, _ request: (BaseURL) -> CanopyRequest) -> Transmission {
        do throws(BaseURL.Malformed) {
            return client.send(request(try BaseURL(baseURL)))
        } catch {
            return .notSent("\(error)")
        }
    }

    // MARK: canopyd

    func announce(_ progress: ExchangeProgress) {
        if progress == .presenting {
            Signals.ignoreUntilTheEnd()
            Unresponsive.forgetLastWords()
        }
        channel.send(.progress(progress))
    }
}
