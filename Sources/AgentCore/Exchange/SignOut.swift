/// One sign-out, from top to bottom: tell the server, record as dead, delete.
///
/// Nothing is forgotten that the server was not told of, unless the user asks for just that.
package struct SignOut<World: ExchangeWorld> {
    private let world: World
    private let isLocal: Bool

    /// `isLocal` forgets the session here and leaves it alive on the server until it expires.
    package init(in world: World, isLocal: Bool) {
        self.world = world
        self.isLocal = isLocal
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
        var over = state.signIns?.current.map { Generation(signIn: $0, number: 0) }
        switch try world.readItem(knowing: state.signIns) {
        case .failed(let failure):
            // Forgetting needs no keyring: what it still holds is dead by record.
            guard isLocal, over != nil else { return .failed(failure) }
        case .found(.none), .found(.otherMachine):
            break
        case .found(.session(let session)):
            over = session.header.position
            if !isLocal, let failure = try endOnServer(session, state) {
                return .failed(failure)
            }
        }
        if let failure = try record(over) { return .failed(failure) }
        try world.emptySlot()
        // A failure is ignored: the item is dead by record.
        _ = try world.deleteItem()
        _ = try world.syncKeyring()
        return .signedOut
    }

    private func endOnServer(
        _ stored: StoredSession, _ state: StateContents
    ) throws(World.Interruption) -> Failure? {
        let signIns = state.signIns
        var session = stored
        if case .session(let successor) = try world.readSlot(),
            successor.header.signIn == stored.header.signIn,
            successor.header.generation > stored.header.generation
        {
            session = successor
        }
        guard signIns?.knowsAlive(session.header.signIn) == true else { return nil }
        let left =
            session.header.access?.remaining(at: world.now(), boot: world.boot) ?? .zero
        if isRestoredCopy(session, state) {
            // Its refresh token must not reach the server any more, not even by name.
            guard left >= SignOut.leastValidity, let token = session.accessToken else { return nil }
            return try tell(token.value, naming: nil, at: session.header.baseURL)
        }
        if left < SignOut.leastValidity {
            switch try Rotation(in: world, known: nil, mayPresent: true).runLocked() {
            case .session(let report):
                guard report.storeFailure == nil,
                    case .found(.session(let rotated)) = try world.readItem(knowing: signIns)
                else { return report.storeFailure ?? SignOut.unreadable }
                session = rotated
            case .signInRequired, .signedOut:
                return nil
            case .failed(let failure):
                return failure
            case .tooEarly(_, let wait):
                return Failure(
                    .throttled, "the access token is over and may not be renewed yet", wait: wait)
            case .rejected, .challenged, .document:
                preconditionFailure("a rotation ended as something else")
            }
        }
        guard let accessToken = session.accessToken?.value else { return SignOut.unreadable }
        return try tell(
            accessToken, naming: session.refreshToken, at: session.header.baseURL)
    }

    private func isRestoredCopy(_ session: StoredSession, _ state: StateContents) -> Bool {
        let decision = PresentationGuard.decide(
            PresentationGuard.Evidence(
                slot: .empty, item: .session(session.header), signIns: state.signIns,
                runtimeMarks: state.runtimeMarks, anchor: state.anchor, now: world.now(),
                boot: world.boot, known: nil, mayPresent: false))
        return decision == .signInRequired(.restoredCopy)
    }

    private static var unreadable: Failure {
        Failure(.serverError, "the server sent no access token to sign out with")
    }

    private func tell(
        _ accessToken: Secret, naming refreshToken: Secret?, at url: String
    ) throws(World.Interruption) -> Failure? {
        var transmission = try world.signOut(accessToken, naming: refreshToken, at: url)
        if case .answered(let answer) = transmission, answer.status == 400, refreshToken != nil {
            // How a native session names itself is not documented: a strict server takes {}.
            transmission = try world.signOut(accessToken, naming: nil, at: url)
        }
        switch transmission {
        case .notSent(let detail): return Failure(.notPresented, detail)
        case .lost(let detail): return Failure(.noAnswer, detail)
        case .answered(let answer):
            return answer.body.withBytes { bytes in
                let body = CanopyBody(bytes, status: answer.status)
                let words = body.words ?? "HTTP status \(answer.status)"
                switch answer.status {
                case 200..<300: return nil
                case 401 where body.isEnvelope: return nil
                case 429:
                    return Failure(.throttled, words, wait: answer.waitTold(at: world.now()))
                case 400..<500 where body.isEnvelope: return Failure(.refused, words)
                case 500..<600: return Failure(.serverError, words)
                default:
                    return Failure(
                        .somebodyInBetween, "\(words), not Canopy's: captive portal or proxy?")
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
        if state.anchor == nil { signIns.buryCopies(at: world.now().wall) }
        for position in [signIns.current.map { Generation(signIn: $0, number: 0) }, over] {
            guard let position else { continue }
            signIns.bury(
                KnownSignIns.Death(
                    signIn: position.signIn, generation: position.number, reason: .signedOut,
                    at: world.now().wall))
        }
        return try world.writeSignIns(signIns)
    }
}
