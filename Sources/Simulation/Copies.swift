internal import AgentCore

/// Backups that come back, and homes on other machines.
extension Episode {
    func freshAnchor() -> Anchor {
        anchors += 1
        return Anchor(inode: 1000 + anchors, birth: time)
    }

    /// Does something to the home that no promise can make good.
    func disturb(_ change: () -> Void) {
        change()
        isDisturbed = true
        disturbedAt = time
        wasEverRestored = true
        releaseTreasure()
        after(random.time(0, 2000), .keyringNews)
    }

    /// A backup, if there is one, comes back.
    func restore(_ fault: Fault) {
        guard let backup else { return }
        disturb {
            switch fault {
            case .keyringRestored:
                home.keyring.replace(backup.session)
            case .homeRestored:
                home.keyring.replace(backup.session)
                home.replaceState(backup.signIns, isCopy: true)
                home.anchor = home.anchor == nil ? nil : freshAnchor()
            default:
                // Restored file by file: the anchor has not changed, and so is not touched.
                if random.isOne(in: 2) { home.keyring.replace(backup.session) }
                if let signIns = backup.signIns { home.replaceState(signIns, isCopy: true) }
            }
        }
    }

    /// A second machine with a copy of the home, as it is or as it was, tries its luck.
    func copyHome() {
        var source = (session: home.keyring.live, signIns: home.signIns)
        if let backup, random.isOne(in: 2) { source = backup }
        backup = (home.keyring.disk, home.syncedState?.signIns)
        guard running.count < 2 else { return }
        let copy = makeCopy(of: source)
        for job in [SimulatedProcess.Job.load, .rotate(mayPresent: true)] {
            if case .session = run(job, in: copy) {
                violate("I3: a copied home took itself for signed in")
            }
        }
        guard random.isOne(in: 2) else { return }
        // Its user signs in there: a session of its own, which is none of ours.
        guard case .session = run(.signIn, in: copy) else { return }
        for _ in 1...2 { _ = run(.rotate(mayPresent: true), in: copy) }
    }

    private func makeCopy(
        of source: (session: StoredSession?, signIns: KnownSignIns?)
    ) -> SimulatedHome {
        // A machine's items and state carry its name; to another they are somebody else's.
        let isOtherMachine = random.isOne(in: 2)
        var keyring = SimulatedKeyring(home.keyring.habit, seed: random.word())
        if !isOtherMachine { keyring.replace(source.session) }
        let copy = SimulatedHome(
            keyring: keyring, holdsForeignItem: isOtherMachine && source.session != nil)
        if !isOtherMachine { copy.replaceState(source.signIns, isCopy: true) }
        if !isOtherMachine || random.isOne(in: 2) { copy.anchor = freshAnchor() }
        return copy
    }

    private func run(
        _ job: SimulatedProcess.Job, in copy: SimulatedHome
    ) -> ExchangeOutcome? {
        let process = SimulatedProcess(
            job, known: nil, slot: copy.slot, agent: nil, readyAt: time, deadline: .max)
        return run(process, in: copy)
    }
}
