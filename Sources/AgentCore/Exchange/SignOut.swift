/// One sign-out, from top to bottom: tell the server, record as dead, delete.
///
/// Nothing is forgotten that the server was not told of, unless the user asks for just that.
package struct SignOut<World: ExchangeWorld> {
    private let world: World
    private let isLocal: Bool
    private let slotKeptFor: TimeSpan?
    private let isSlotRewritten: Bool

    /// `isLocal` forgets the session here and leaves it alive on the server until it expires;
    /// `slotKeptFor`: for how long the slot still keeps what was reported as stored, once or
    /// (`isSlotRewritten`) twice.
    package init(
        in world: World, isLocal: Bool, slotKeptFor: TimeSpan? = nil, isSlotRewritten: Bool = false
    ) {
        self.world = world
        self.isLocal = isLocal
        self.slotKeptFor = slotKeptFor
        self.isSlotRewritten = isSlotRewritten
    }

    /// The validity that an access token needs to be worth sending.
    private static var leastValidity: TimeSpan { .seconds(2) }

    /// Signs out under the profile's lock.
    package func run() throws(World.Interruption) -> ExchangeOutcome {
        guard try world.lock() else {
            return .failed(Failure(.lockBusy, "another exchange holds the profile's lock"))
        }
        let state: StateContents
        switch try world.readState() {
        case .found(let contents): state = contents
        case .failed(let failure): return .failed(failure)
        }
        let found: Reading<Generation?> =
            isLocal ? try given(up: state) : try ended(state)
        let over: Generation?
        switch found {
        case .found(let position): over = position
        case .failed(let failure): return .failed(failure)
        }
        // No record tells whose it is, and that it is over.
        let hasToGo = world.holdsUnreadableItem
        if let failure = try record(over) { return .failed(failure) }
        try world.emptySlot()
        let left = try world.deleteItem()
        if hasToGo, let left { return .failed(left) }
        // A failure is ignored otherwise: the item is dead by record.
        _ = try world.syncKeyring()
        return .signedOut
    }

    /// What the user gives up without asking the server: what cannot be read as well, a later version's
    /// successor included, of which this may be the only copy.
    private func given(
        up state: StateContents
    ) throws(World.Interruption) -> Reading<Generation?> {
        let current = state.signIns?.current.map { Generation(signIn: $0, number: 0) }
        switch try world.readItem(knowing: state.signIns) {
        case .failed(let failure):
            // Forgetting needs no keyring where what it still holds is dead by record.
            guard current != nil || world.holdsUnreadableItem else { return .failed(failure) }
            return .found(current)
        case .found(let item):
            let session = newest(item, try world.readSlot(), state)
            return .found(session?.header.position ?? current)
        }
    }

    /// Ends on the server what can be read, and nothing where something cannot.
    private func ended(
        _ state: StateContents
    ) throws(World.Interruption) -> Reading<Generation?> {
        let item: ItemContents
        switch try world.readItem(knowing: state.signIns) {
        case .failed(let failure): return .failed(failure)
        case .found(let contents): item = contents
        }
        let slot = try world.readSlot()
        if case .newerFormat(let version) = slot {
            return .failed(SlotFormat.newerFormat(version))
        }
        guard let session = newest(item, slot, state) else {
            return .found(state.signIns?.current.map { Generation(signIn: $0, number: 0) })
        }
        if let failure = try endOnServer(session, state) { return .failed(failure) }
        return .found(session.header.position)
    }

    /// The newest that can be read of the session: in the keyring, or not stored yet.
    private func newest(
        _ item: ItemContents, _ slot: SlotContents, _ state: StateContents
    ) -> StoredSession? {
        switch (item, slot) {
        case (.session(let stored), .session(let successor))
        where successor.header.signIn == stored.header.signIn
            && successor.header.generation > stored.header.generation:
            return successor
        case (.session(let stored), .session(let session))
        where state.signIns?.isNewer(session.header.signIn, than: stored.header.signIn) == true:
            return session
        case (.session(let stored), _):
            return stored
        case (.none, .session(let successor)), (.otherMachine, .session(let successor)):
            let isOurs = state.signIns?.knowsAlive(successor.header.signIn) == true
            return isOurs ? successor : nil
        case (.none, .empty), (.none, .torn), (.none, .newerFormat), (.otherMachine, .empty),
            (.otherMachine, .torn), (.otherMachine, .newerFormat):
            return nil
        }
    }

    private func endOnServer(
        _ session: StoredSession, _ state: StateContents
    ) throws(World.Interruption) -> Failure? {
        guard state.signIns?.knowsAlive(session.header.signIn) == true else { return nil }
        let left =
            session.header.access?.remaining(at: world.now(), boot: world.boot) ?? .zero
        let isWorthSending = left >= SignOut.leastValidity
        if isRestoredCopy(session, state) {
            // Its refresh token must not reach the server any more, not even by name.
            guard isWorthSending, let token = session.accessToken else { return nil }
            switch try tell(token.value, naming: nil, at: session.header.baseURL) {
            case .ended, .tokenRefused: return nil
            case .failed(let failure): return failure
            }
        }
        if isWorthSending, let token = session.accessToken {
            let answer = try tell(
                token.value, naming: session.refreshToken, at: session.header.baseURL)
            switch answer {
            case .ended: return nil
            case .failed(let failure): return failure
            case .tokenRefused:
                // It says that the access token is dead, which the session need not be.
                break
            }
        }
        return try endWithNewToken(state)
    }

    /// Rotates once, and tells the server with what that brought.
    private func endWithNewToken(
        _ state: StateContents
    ) throws(World.Interruption) -> Failure? {
        let rotation = Rotation(
            in: world, known: nil, mayPresent: true, slotKeptFor: slotKeptFor,
            isSlotRewritten: isSlotRewritten)
        switch try rotation.runLocked() {
        case .session(let report):
            guard report.storeFailure == nil,
                case .found(.session(let rotated)) = try world.readItem(knowing: state.signIns),
                let token = rotated.accessToken?.value
            else {
                return report.storeFailure
                    ?? Failure(
                        .serverError, "the server sent no access token to sign out with")
            }
            let answer = try tell(
                token, naming: rotated.refreshToken, at: rotated.header.baseURL)
            switch answer {
            case .ended: return nil
            case .failed(let failure): return failure
            case .tokenRefused(let words): return Failure(.refused, words)
            }
        case .signInRequired, .signedOut:
            return nil
        case .failed(let failure):
            return failure
        case .tooEarly(_, let wait):
            return Failure(
                .throttled, "the access token is over and may not be renewed yet", wait: wait)
        case .rejected, .challenged, .document, .tokenRefused:
            preconditionFailure("a rotation ended as something else")
        }
    }

    private func isRestoredCopy(_ session: StoredSession, _ state: StateContents) -> Bool {
        let decision = PresentationGuard.decide(
            PresentationGuard.Evidence(
                slot: .empty, item: .session(session.header), signIns: state.signIns,
                runtimeMarks: state.runtimeMarks, anchor: state.anchor, now: world.now(),
                boot: world.boot, known: nil, mayPresent: false))
        return decision == .signInRequired(.restoredCopy)
    }

    /// What the server made of a sign-out.
    private enum Answer {
        case ended
        /// 401 in Canopy's envelope, in its words.
        case tokenRefused(String)
        case failed(Failure)
    }

    private func tell(
        _ accessToken: Secret, naming refreshToken: Secret?, at url: String
    ) throws(World.Interruption) -> Answer {
        // Ended on the server and unrecorded here, it would be shown as lost: nobody may end us now.
        try world.announce(.presenting)
        var transmission = try world.signOut(accessToken, naming: refreshToken, at: url)
        if case .answered(let answer) = transmission, answer.status == 400, refreshToken != nil {
            // How a native session names itself is not documented: a strict server takes {}.
            transmission = try world.signOut(accessToken, naming: nil, at: url)
        }
        switch transmission {
        case .notSent(let detail): return .failed(Failure(.notPresented, detail))
        case .lost(let detail): return .failed(Failure(.noAnswer, detail))
        case .answered(let answer):
            return answer.body.withBytes { bytes in
                let body = CanopyBody(bytes, of: answer)
                let words = body.words ?? "HTTP status \(answer.status)"
                switch answer.status {
                case 200..<300 where answer.body.count == 0 || body.isAnswer: return .ended
                case 401 where body.isEnvelope: return .tokenRefused(words)
                case 429:
                    return .failed(
                        Failure(.throttled, words, wait: answer.waitTold(at: world.now())))
                case 400..<500 where body.isEnvelope: return .failed(Failure(.refused, words))
                case 500..<600: return .failed(Failure(.serverError, words))
                default:
                    return .failed(
                        Failure(
                            .somebodyInBetween,
                            "\(words), not Canopy's: captive portal or proxy?"))
                }
            }
        }
    }

    private func record(_ over: Generation?) throws(World.Interruption) -> Failure? {
        // Read again: a rotation in between has raised the mark.
        let state: StateContents
        switch try world.readState() {
        case .found(let contents): state = contents
        case .failed(let failure): return failure
        }
        var signIns = state.signIns ?? KnownSignIns()
        // What was begun is over as well: without its keyring nobody knows which of them it holds, and
        // in a file from a backup none of it may pass for ours.
        let begun = signIns.pending + [signIns.current].compactMap(\.self)
        for position in [over].compactMap(\.self) + begun.map({ Generation(signIn: $0, number: 0) })
        {
            signIns.bury(
                KnownSignIns.Death(
                    signIn: position.signIn, generation: position.number, reason: .signedOut,
                    at: world.now().wall))
        }
        return try world.writeSignIns(signIns)
    }
}
