/// One sign-in, from top to bottom, in two phases: the guard accepts the new id and the old one
/// until the new session is stored, so that a crash between any two steps leaves one that works.
package struct SignIn<World: ExchangeWorld> {
    private let world: World
    private let id: SignInID
    private let baseURL: String
    private let publishableKey: String

    /// `id` is freshly drawn; the password, or the code, is the world's to send.
    package init(in world: World, id: SignInID, baseURL: String, publishableKey: String) {
        self.world = world
        self.id = id
        self.baseURL = baseURL
        self.publishableKey = publishableKey
    }

    /// Signs in under the profile's lock, replacing whatever the profile held.
    package func run() throws(World.Interruption) -> ExchangeOutcome {
        guard try world.lock() else {
            return .failed(Failure(.lockBusy, "another exchange holds the profile's lock"))
        }
        // Keyring and state directory are tried first: a password is not to be spent on a session
        // that cannot be kept.
        let anchor: Anchor
        switch try world.makeAnchor() {
        case .found(let made): anchor = made
        case .failed(let failure): return .failed(failure)
        }
        let state: StateContents
        switch try world.readState() {
        case .found(let contents): state = contents
        case .failed(let failure): return .failed(failure)
        }
        if let failure = try keyringFailure(state.signIns) { return .failed(failure) }
        // Nor is what takes the session's place to throw away what only another version can read.
        if case .newerFormat(let version) = try world.readSlot() {
            return .failed(SlotFormat.newerFormat(version))
        }
        var signIns = state.signIns ?? KnownSignIns()
        if state.anchor == nil {
            // The file came from a backup. Written anew it would pass for ours, and with it the old
            // tokens that it vouches for.
            signIns.buryCopies(at: world.now().wall)
        }
        signIns.begin(id)
        if let failure = try world.writeSignIns(signIns) { return .failed(failure) }

        try world.announce(.presenting)
        let sent = Stamp(world.now(), boot: world.boot)
        let transmission = try world.signIn(at: baseURL, publishableKey: publishableKey)
        switch SignInMeaning(transmission, sent: sent, now: world.now(), memory: world.memory) {
        case .granted(let grant, let identity):
            return try keep(grant, identity, anchor, signIns)
        case .challenged(let token, let factors, let expiresAt):
            try abandon(signIns)
            // Whoever goes on with it draws an id of its own: this one names the challenge alone.
            let continuation = SignInContinuation(
                id: id, baseURL: baseURL, publishableKey: publishableKey, token: token,
                factors: factors, expiresAt: expiresAt)
            return .challenged(continuation.challenge(in: world.memory))
        case .notNative(let accessToken):
            try abandon(signIns)
            if let accessToken {
                // Nobody could ever refresh it. That it may fail to end is ignored: it expires.
                _ = try world.signOut(accessToken, naming: nil, at: baseURL)
            }
            return .rejected(
                Rejection(
                    .keyNotNative,
                    "the key is marked Web: the server keeps the refresh token in a cookie"))
        case .rejected(let words):
            try abandon(signIns)
            return .rejected(Rejection(.credentials, words))
        case .failed(let failure):
            try abandon(signIns)
            return .failed(failure)
        }
    }

    /// Why the session could not be kept.
    private func keyringFailure(_ signIns: KnownSignIns?) throws(World.Interruption) -> Failure? {
        guard case .failed(let failure) = try world.readItem(knowing: signIns) else { return nil }
        guard failure.kind == .keyringLocked, signIns?.expectsItem == true else { return failure }
        // What a locked collection may hide of the old sign-in does not matter to a new one.
        guard case .failed(let cause) = try world.readItem(knowing: nil) else { return nil }
        return cause
    }

    private func keep(
        _ grant: Grant, _ identity: Identity, _ anchor: Anchor, _ signIns: KnownSignIns
    ) throws(World.Interruption) -> ExchangeOutcome {
        let header = SessionHeader(
            signIn: id, generation: 0, baseURL: baseURL, publishableKey: publishableKey,
            identity: identity, signedInAt: world.now().wall, anchor: anchor)
        var session = StoredSession(
            header: header, refreshToken: grant.refreshToken, accessToken: grant.accessToken)
        if let failure = try storeWithPatience(session) {
            return try giveUp(session, failure, signIns)
        }
        let keptFor = try settleSlot(for: &session)
        if !world.keyringWritesAtOnce, signIns.expectsItem {
            // A power cut within seconds would bring the old item back, and the guard has to know
            // it then. The first rotation completes, long after this item is written.
            return .session(
                SessionReport(session, isAmbiguous: false, slotKeptFor: keptFor))
        }
        var completed = signIns
        completed.complete(id, account: header.account)
        // A failure is ignored: the guard accepts a pending id, and the first rotation completes.
        _ = try world.writeSignIns(completed)
        return .session(SessionReport(session, isAmbiguous: false, slotKeptFor: keptFor))
    }

    /// A successor of the old sign-in has nothing to wait for any more; what a late keyring may not have
    /// written takes its place, and for how long is returned.
    private func settleSlot(
        for session: inout StoredSession
    ) throws(World.Interruption) -> TimeSpan? {
        guard !world.keyringWritesAtOnce else {
            try world.emptySlot()
            return nil
        }
        let slotHolds = try world.fillSlot(session)
        if slotHolds, world.isSlotKept { return RotationTiming.lateWrite }
        session = try ItemStore(world).outlast(session)
        if slotHolds { try world.emptySlot() }
        return nil
    }

    /// Not stored, not signed in; the old session, if there was one, still counts.
    ///
    /// Unless the keyring may hold the new one after all: a failure does not mean that nothing was
    /// written. Then its id stays accepted and it is not ended, and the next look at the keyring
    /// decides.
    private func giveUp(
        _ session: StoredSession, _ failure: Failure, _ signIns: KnownSignIns
    ) throws(World.Interruption) -> ExchangeOutcome {
        guard case .found(let item) = try world.readItem(knowing: KnownSignIns(current: id)) else {
            return .failed(failure)
        }
        if case .session(let stored) = item, stored.header.signIn == id { return .failed(failure) }
        try abandon(signIns)
        if let accessToken = session.accessToken {
            // That it may fail to end is ignored: nobody can refresh it, and it expires.
            _ = try world.signOut(
                accessToken.value, naming: session.refreshToken, at: baseURL)
        }
        return .failed(failure)
    }

    private func storeWithPatience(
        _ session: StoredSession
    ) throws(World.Interruption) -> Failure? {
        let began = world.now().boot
        while let failure = try ItemStore(world).store(session) {
            guard world.now().boot - began < RotationTiming.storePatience else { return failure }
            try world.pause(for: RotationTiming.storeRetry)
        }
        return nil
    }

    private func abandon(_ signIns: KnownSignIns) throws(World.Interruption) {
        var abandoned = signIns
        abandoned.abandon(id)
        // A failure is ignored: a pending id that nothing was stored under accepts nothing.
        _ = try world.writeSignIns(abandoned)
    }
}
