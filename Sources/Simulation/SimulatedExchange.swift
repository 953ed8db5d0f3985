internal import AgentCore
internal import SandboxRules

/// The world of one exchange: each call is a step of the simulation, at which anything may happen.
final class SimulatedExchange: ExchangeWorld {
    /// Thrown where the process is killed.
    struct Killed: Error {}

    let episode: Episode
    let home: SimulatedHome
    let process: SimulatedProcess

    init(_ episode: Episode, home: SimulatedHome, process: SimulatedProcess) {
        self.episode = episode
        self.home = home
        self.process = process
    }

    var boot: BootID { episode.boot }
    var memory: SecretMemory { Answers.memory }
    func draw() -> Double { episode.draw() }
    func now() -> Moment { episode.now }

    func pause(for span: TimeSpan) throws(Killed) {
        try step(taking: span.nanoseconds)
    }

    func pause(awakeFor span: TimeSpan) throws(Killed) {
        let end = episode.time - episode.slept + span.nanoseconds
        while episode.time - episode.slept < end {
            try step(taking: end - (episode.time - episode.slept))
        }
    }

    /// Lets time pass and things happen; throws if this process is gone then.
    func step(taking time: Int64) throws(Killed) {
        if process.isUnslotted {
            episode.violate("step 5: a successor was received and not put into the slot first")
        }
        episode.step(taking: time)
        if process.isKilled || episode.violation != nil { throw Killed() }
    }

    /// What may happen after the effect and before the caller knows of it.
    private func settle() throws(Killed) {
        if process.isKilled || episode.violation != nil { throw Killed() }
    }

    func requireLock(_ name: StaticString) {
        if home.lockHolder !== process {
            episode.violate("I1: \(name) was called without the profile's lock")
        }
    }

    // MARK: Lock and slot

    func lock() throws(Killed) -> Bool {
        try step(taking: 100_000)
        guard home.lockHolder == nil else { return false }
        home.lockHolder = process
        if home === episode.home { process.target = episode.liveFamily(process.slot) }
        return true
    }

    var isSlotKept: Bool { process.agent != nil || episode.keepsDescriptors }

    func readSlot() throws(Killed) -> SlotContents {
        try step(taking: 10_000)
        switch process.slot.contents {
        case .empty: return .empty
        case .torn: return .torn
        case .session(let session): return .session(session)
        }
    }

    func fillSlot(_ session: StoredSession) throws(Killed) -> Bool {
        requireLock("fillSlot")
        process.isUnslotted = false
        guard !process.slot.isUnwritable else {
            process.isSlotRefused = true
            return false
        }
        process.slot.tear()
        try step(taking: 10_000)
        process.slot.fill(session)
        episode.noteSuccessor(session, .inSlot)
        try settle()
        return true
    }

    func emptySlot() throws(Killed) {
        requireLock("emptySlot")
        try step(taking: 10_000)
        guard !process.slot.isUnwritable else { return }
        checkSlotIsOver()
        process.slot.empty()
        if episode.takenAt >= process.readyAt { episode.releaseTreasure() }
    }

    /// I5: the slot's successor is emptied once the keyring has it, or once it is of no use.
    private func checkSlotIsOver() {
        guard case .session(let slot) = process.slot.contents, !episode.isDisturbed else { return }
        let token = Answers.number(slot.refreshToken)
        guard episode.server.isAlive(episode.server.fates[token].family, at: episode.time),
            episode.server.fates[token].successor == .none,
            !episode.isOver(slot.header.signIn)
        else { return }
        if let item = home.keyring.live, item.header.signIn != slot.header.signIn { return }
        home.keyring.flush(at: episode.time)
        if let item = home.keyring.disk, item.header.signIn == slot.header.signIn,
            item.header.generation >= slot.header.generation
        {
            return
        }
        episode.violate("I5: the slot was emptied before the keyring had its good successor")
    }

    // MARK: Keyring

    /// Why the next call to the keyring fails; nil if it works.
    private func keyringFailure() throws(Killed) -> Failure? {
        try step(taking: episode.shortTime())
        switch home.keyring.condition {
        case .working:
            guard episode.isFault(.keyringCallFailed, in: episode.rates.keyringCall) else {
                return nil
            }
            return Failure(.keyringUnavailable, "no answer")
        case .locked: return Failure(.keyringLocked, "locked")
        case .gone: return Failure(.keyringUnavailable, "nobody there")
        case .hanging:
            try step(taking: 5_000_000_000)
            return Failure(.keyringUnavailable, "no answer in time")
        }
    }

    func readItem(knowing signIns: KnownSignIns?) throws(Killed) -> Reading<ItemContents> {
        if let failure = try keyringFailure() { return .failed(failure) }
        guard let item = home.keyring.live else {
            return .found(home.holdsForeignItem ? .otherMachine : .none)
        }
        return .found(.session(item))
    }

    func writeItem(_ session: StoredSession) throws(Killed) -> Failure? {
        requireLock("writeItem")
        let began = episode.time
        if let failure = try keyringFailure() {
            // A call that failed in the middle may have done its work.
            switch home.keyring.condition {
            case .working where episode.isOne(in: 2): write(session, begun: began)
            case .hanging where episode.isOne(in: 2): home.keyring.writeLater(session)
            case .working, .locked, .gone, .hanging: break
            }
            return failure
        }
        if home.keyring.live == nil,
            episode.isFault(.emptyItemLeft, in: episode.rates.keyringCall / 4)
        {
            // gnome-keyring ended between its two writes of a new item.
            home.keyring.leaveEmptyItem()
            return Failure(.keyringUnavailable, "the connection is closed")
        }
        if !home.keyring.dropsWrites { write(session, begun: began) }
        try settle()
        return nil
    }

    private func write(_ session: StoredSession, begun began: Int64) {
        checkOverwriting(with: session)
        let isNew = home.keyring.live?.refreshToken != session.refreshToken
        home.keyring.write(session, at: episode.time)
        if home === episode.home { episode.noteTreasure() }
        if isNew { episode.noteStored(session, at: began) }
        episode.noteSuccessor(session, .stored)
    }

    /// I5: nothing but a newer generation, or the user, takes the place of a good stored token.
    private func checkOverwriting(with new: StoredSession) {
        guard let old = home.keyring.live, !episode.isDisturbed else { return }
        if old.header.signIn != new.header.signIn {
            if case .signIn = process.job { return }
            // A late keyring has brought back the session before the last sign-in.
            if !home.keyring.writesAtOnce, let before = episode.families[old.header.signIn],
                let after = episode.families[new.header.signIn], after.number > before.number
            {
                return
            }
            episode.violate("I5: a good stored session was overwritten by another one")
        } else if new.header.generation < old.header.generation {
            episode.violate("I5: a good stored token was overwritten by an older one")
        } else if new.header.generation == old.header.generation,
            new.refreshToken != old.refreshToken
        {
            episode.violate("I5: a good stored token was overwritten by another of its generation")
        } else if let attempt = old.header.attemptedAt, old.header.position == new.header.position {
            let before = old.header.notBefore?.remaining(at: now(), boot: boot) ?? .zero
            let after = new.header.notBefore?.remaining(at: now(), boot: boot) ?? .zero
            if new.header.attemptedAt == nil {
                episode.violate("the keyring was told that a token which was presented was not")
            } else if new.header.attemptedAt == attempt, after < before,
                // Across boots the wall clock tells, which may be set meanwhile.
                old.header.notBefore?.since.boot == boot
            {
                episode.violate("a wait that the server asked for was cut short in the keyring")
            }
        }
    }

    func syncKeyring() throws(Killed) -> Failure? {
        try step(taking: episode.shortTime())
        home.keyring.sync()
        if home.keyring.writesAtOnce, let disk = home.keyring.disk {
            episode.noteSuccessor(disk, .durable)
        }
        try settle()
        return nil
    }

    func deleteItem() throws(Killed) -> Failure? {
        requireLock("deleteItem")
        if let failure = try keyringFailure() {
            if home.keyring.condition == .hanging, episode.isOne(in: 2) {
                home.keyring.writeLater(nil)
            }
            return failure
        }
        if let item = home.keyring.live, !episode.isDisturbed {
            var isSigningOut = false
            if case .signOut = process.job { isSigningOut = true }
            let family = episode.server.fates[Answers.number(item.refreshToken)].family
            if !isSigningOut, episode.server.isAlive(family, at: episode.time) {
                episode.violate("I5: a good stored session was deleted")
            }
        }
        home.keyring.write(nil, at: episode.time)
        try settle()
        return nil
    }

    var keyringWritesAtOnce: Bool { home.keyring.writesAtOnce }
    var holdsUnreadableItem: Bool { false }

    // MARK: State directory

    func readState() throws(Killed) -> Reading<StateContents> {
        try step(taking: 50_000)
        if home.isStateUnreadable || episode.isFault(.stateCallFailed, in: episode.rates.stateCall)
        {
            return .failed(Failure(.storageFailed, "EIO"))
        }
        return .found(
            StateContents(
                signIns: home.signIns, runtimeMarks: home.runtimeMarks,
                // As canopyd-exchange has it: a file that names another one vouches for nothing.
                anchor: home.state?.isCopy == true ? nil : home.anchor))
    }

    func writeSignIns(_ signIns: KnownSignIns) throws(Killed) -> Failure? {
        requireLock("writeSignIns")
        try step(taking: 2_000_000)
        if home.isDiskFull || home.isStateUnreadable {
            return Failure(.storageFailed, "ENOSPC")
        }
        if episode.isFault(.stateCallFailed, in: episode.rates.stateCall) {
            // The rename was done, and the directory's fsync failed.
            if episode.isOne(in: 3) { home.rename(signIns) }
            return Failure(.storageFailed, "EIO")
        }
        home.rename(signIns)
        try step(taking: 1_000_000)
        home.syncState()
        try step(taking: 100_000)
        home.runtimeMarks = signIns.marks
        return nil
    }

    func makeAnchor() throws(Killed) -> Reading<Anchor> {
        try step(taking: 2_000_000)
        if let anchor = home.anchor, !home.isStateUnreadable { return .found(anchor) }
        if home.isDiskFull || home.isStateUnreadable {
            return .failed(Failure(.storageFailed, "ENOSPC"))
        }
        let made = episode.freshAnchor()
        home.anchor = made
        return .found(made)
    }

    // MARK: canopyd

    func announce(_ progress: ExchangeProgress) throws(Killed) {
        try step(taking: 10_000)
        if progress == .presenting { process.isPresenting = true }
        if let agent = process.agent { agent.heard(progress) }
        try settle()
    }
}
