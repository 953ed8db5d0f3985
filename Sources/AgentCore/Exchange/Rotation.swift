/// One rotation, from top to bottom: lock, read, guard, mark, present, store, report.
///
/// The order is the safety argument (ROTATION, steps 1 to 6). Nothing here decides about tokens:
/// ``PresentationGuard`` says what may be done, ``RefreshMeaning`` what an answer means.
package struct Rotation<World: ExchangeWorld> {
    private let world: World
    private let known: Generation?
    private let mayPresent: Bool
    private let slotKeptFor: TimeSpan?
    private let isSlotRewritten: Bool
    private let isLast: Bool

    /// `known` is what canopyd has in hand; `mayPresent` false settles what is in slot and
    /// keyring, and presents nothing; `slotKeptFor`: for how long the slot still keeps what was
    /// reported as stored, once or (`isSlotRewritten`) twice; `isLast` waits for that, since the slot
    /// is about to be lost.
    package init(
        in world: World, known: Generation?, mayPresent: Bool, slotKeptFor: TimeSpan? = nil,
        isSlotRewritten: Bool = false, isLast: Bool = false
    ) {
        self.world = world
        self.known = known
        self.mayPresent = mayPresent
        self.slotKeptFor = slotKeptFor
        self.isSlotRewritten = isSlotRewritten
        self.isLast = isLast
    }

    /// Steps 1 to 6 under the profile's lock.
    package func run() throws(World.Interruption) -> ExchangeOutcome {
        guard try world.lock() else {
            return .failed(Failure(.lockBusy, "another exchange holds the profile's lock"))
        }
        return try runLocked()
    }

    /// Steps 2 to 6, for a caller that holds the lock.
    package func runLocked() throws(World.Interruption) -> ExchangeOutcome {
        // Not counted down: a machine that sleeps meanwhile stops the keyring's clock, too.
        var keepsFor = slotKeptFor
        var isRewritten = isSlotRewritten
        var untold: StoredSession?
        while true {
            let state: StateContents
            switch try world.readState() {
            case .found(let contents): state = contents
            case .failed(let failure): return failed(failure, untold)
            }
            let item: ItemContents
            switch try world.readItem(knowing: state.signIns) {
            case .found(let contents): item = contents
            case .failed(let failure):
                // What is known to be stored is not what waits for the keyring.
                return keepsFor == nil ? try unread(failure, state) : failed(failure, untold)
            }
            let slot = try world.readSlot()
            if case .session(let stored) = item, case .session(let successor) = slot,
                stored.header.position == successor.header.position,
                stored.refreshToken != successor.refreshToken
            {
                // Another daemon was given another successor of the same token: what the keyring holds came
                // later, under the lock.
                try world.emptySlot()
                continue
            }
            let evidence = PresentationGuard.Evidence(
                slot: slot.reading, item: item.reading, signIns: state.signIns,
                runtimeMarks: state.runtimeMarks, anchor: state.anchor, now: world.now(),
                boot: world.boot, known: known, mayPresent: mayPresent,
                keyringWritesAtOnce: world.keyringWritesAtOnce,
                slotKeptFor: keepsFor)
            let keptFor = PresentationGuard.slotKeptFor(evidence)
            if isLast, let keptFor {
                try world.pause(awakeFor: keptFor)
                keepsFor = .zero
                continue
            }
            switch (PresentationGuard.decide(evidence), item, slot) {
            case (.storeSuccessor, _, .session(let slotted)):
                // Of the same token the item tells more: when it was presented since, and what the server
                // asked for then.
                var successor = item.session(at: slotted.header.position) ?? slotted
                if let failure = try storeWithPatience(&successor) {
                    return .session(
                        SessionReport(successor, isAmbiguous: false, storeFailure: failure))
                }
                keepsFor = RotationTiming.lateWrite
                isRewritten = false
                if !world.keyringWritesAtOnce { untold = successor }
            case (.confirmSuccessor, .session(let stored), _):
                // One that was presented since was stored by that in other bytes; and what is left of its
                // grace is not to be waited away.
                let isDone =
                    world.keyringWritesAtOnce || isRewritten
                    || stored.header.attemptedAt != nil
                let again = stored.toldAnew(at: world.now(), boot: world.boot)
                if let failure = try isDone ? confirm(stored) : store(again) {
                    return .session(
                        SessionReport(stored, isAmbiguous: false, storeFailure: failure))
                }
                if isDone {
                    try world.emptySlot()
                } else {
                    keepsFor = RotationTiming.lateWrite
                    isRewritten = true
                }
            case (.dropSuccessor, _, _):
                try world.emptySlot()
            case (.leaveSuccessor(let version), let item, _):
                let failure = SlotFormat.newerFormat(version)
                guard PresentationGuard.mayServe(evidence), case .session(let session) = item else {
                    return failed(failure, untold)
                }
                return .session(
                    SessionReport(session, isAmbiguous: false, storeFailure: failure))
            case (.adopt(let ambiguous), .session(let session), _):
                return .session(
                    SessionReport(
                        session, isAmbiguous: ambiguous, slotKeptFor: keptFor,
                        isSlotRewritten: isRewritten))
            case (.wait(let span), .session(let session), _):
                if state.signIns?.mark(of: session.header.signIn) == session.header.generation {
                    // A hold is on tokens that were never presented: this one was told to wait.
                    return .failed(Failure(.throttled, "the server asked to wait", wait: span))
                }
                let report = SessionReport(
                    session, isAmbiguous: false, slotKeptFor: keptFor,
                    isSlotRewritten: isRewritten)
                return .tooEarly(report, span)
            case (.present(let ambiguous), .session(let session), _):
                return try present(session, state, ambiguous)
            case (.signInRequired(let reason), .session(let session), _):
                return .signInRequired(reason, "", account: session.header.account)
            case (.signInRequired(let reason), _, _):
                return .signInRequired(reason, "")
            case (.storeSuccessor, _, _), (.confirmSuccessor, _, _), (.adopt, _, _),
                (.wait, _, _), (.present, _, _):
                preconditionFailure("the guard decided about a session that was not read")
            }
        }
    }

    /// A failure; after `untold` was stored in a late keyring it is one to store: canopyd does not know of
    /// the time that began with it, and would have the slot emptied too early.
    private func failed(_ failure: Failure, _ untold: StoredSession?) -> ExchangeOutcome {
        guard let untold else { return .failed(failure) }
        return .session(SessionReport(untold, isAmbiguous: false, storeFailure: failure))
    }

    /// The keyring cannot be read: what waits for it in the slot goes on waiting, and its access token
    /// serves, after a restart of canopyd too.
    private func unread(
        _ failure: Failure, _ state: StateContents
    ) throws(World.Interruption) -> ExchangeOutcome {
        switch failure.kind {
        case .keyringLocked, .keyringUnavailable:
            guard case .session(let successor) = try world.readSlot(),
                PresentationGuard.isAhead(successor.header, of: state)
            else { return .failed(failure) }
            return .session(SessionReport(successor, isAmbiguous: false, storeFailure: failure))
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
            .notNative, .storageFailed, .successorUnstored, .lockBusy, .exchangeFailed:
            return .failed(failure)
        }
    }

    // Steps 3 and 4.
    private func present(
        _ session: StoredSession, _ state: StateContents, _ presentedBefore: Bool
    ) throws(World.Interruption) -> ExchangeOutcome {
        let position = session.header.position
        let signIns = state.signIns ?? KnownSignIns()
        // The higher of the two copies: taking a mark back must lower neither.
        let markBefore = [signIns.mark(of: position.signIn), state.runtimeMarks[position.signIn]]
            .compactMap(\.self).max()
        var marked = signIns
        if marked.current != position.signIn {
            // A sign-in was cut short after its item was stored: that item counts from now on.
            marked.complete(position.signIn, account: session.header.account)
        }
        marked.raiseMark(of: position.signIn, to: position.number)
        if let failure = try world.writeSignIns(marked) { return .failed(failure) }

        var attempt = session
        attempt.header.attemptedAt = world.now().wall
        // It is over. Kept, a reboot would make it count again, and the same bytes miss the grace.
        attempt.header.notBefore = nil
        if let failure = try store(attempt) {
            try withdraw(presentedBefore, marked, position, to: markBefore)
            return .failed(failure)
        }

        try world.announce(.presenting)
        var ambiguous = presentedBefore
        let repetitions =
            presentedBefore ? RotationTiming.laterRetries : RotationTiming.quickRetries
        // Counted apart by cause: a network that is down, or a portal that answers for it, must not
        // use up the quick repetitions that the first request to get through may need.
        var retries: [Failure.Kind: ArraySlice<TimeSpan>] = [:]
        var unavailableBefore = false
        while true {
            let sent = Stamp(world.now(), boot: world.boot)
            let transmission = try world.present(attempt.refreshToken, to: attempt.header.baseURL)
            let meaning = RefreshMeaning(
                transmission, sent: sent, now: world.now(), memory: world.memory)
            let failure: Failure
            let pause: TimeSpan?
            switch meaning {
            case .rotated(let grant):
                return try keep(grant, of: attempt, ambiguous)
            case .verdict(let words):
                return try bury(attempt, words, ambiguous ? .rotationLost : .revokedOrExpired)
            case .notNative:
                return .failed(
                    Failure(
                        .notNative,
                        "the server rotated without a refresh token in its answer: "
                            + "the session delivers by cookie"))
            case .refused(let words):
                return .failed(Failure(.refused, words))
            case .toldToWait(let wait, let words):
                return try obey(wait, .zero, words, attempt)
            case .unavailable(let wait, let words):
                guard !unavailableBefore else {
                    guard let wait else { return .failed(Failure(.serverError, words)) }
                    let backOff = BackOff.server(lifetime: attempt.header.access?.lifetime)
                    return try obey(wait, backOff.ceiling, words, attempt)
                }
                unavailableBefore = true
                ambiguous = true
                pause = RotationTiming.unavailableRetry
                _ = retries[.serverError, default: repetitions[...]].popFirst()
                failure = Failure(.serverError, words)
            case .notPresented(let detail):
                failure = Failure(.notPresented, detail)
                guard ambiguous else {
                    try withdraw(presentedBefore, marked, position, to: markBefore)
                    return .failed(failure)
                }
                pause = retries[failure.kind, default: repetitions[...]].popFirst()
            case .ambiguous(let cause):
                ambiguous = true
                pause = retries[cause.kind, default: repetitions[...]].popFirst()
                failure = cause
            }
            guard let pause else { return .failed(failure) }
            try world.announce(.retrying(failure))
            try world.pause(for: pause)
        }
    }

    /// Nothing was presented after all, so the mark that said it might goes back to where it was.
    private func withdraw(
        _ presentedBefore: Bool, _ marked: KnownSignIns, _ position: Generation, to before: Int64?
    ) throws(World.Interruption) {
        guard !presentedBefore else { return }
        var restored = marked
        restored.withdrawMark(of: position.signIn, to: before)
        // A failure is ignored: a mark that is too high makes the next attempt count as a
        // repetition, which costs a hold and loses nothing.
        _ = try world.writeSignIns(restored)
    }

    // Step 5.
    private func keep(
        _ grant: Grant, of session: StoredSession, _ ambiguous: Bool
    ) throws(World.Interruption) -> ExchangeOutcome {
        let now = Stamp(world.now(), boot: world.boot)
        var header = session.header
        let lifetime = grant.accessToken?.life.lifetime ?? header.access?.lifetime
        header = SessionHeader(
            signIn: header.signIn, generation: header.generation + 1, baseURL: header.baseURL,
            publishableKey: header.publishableKey, identity: header.identity,
            signedInAt: header.signedInAt, anchor: header.anchor, lastRotation: now)
        var hold = TimeSpan.zero
        if ambiguous {
            hold = RotationTiming.hold(lifetime: lifetime)
        }
        if hold > .zero {
            header.notBefore = NotBefore(since: now, span: hold)
        }
        var successor = StoredSession(
            header: header, refreshToken: grant.refreshToken, accessToken: grant.accessToken)
        successor.header.notBefore = ItemStore(world).hold(of: successor.header)
        let slotHolds = try world.fillSlot(successor)
        let patience: Patience = slotHolds ? .brief : .endless
        if let failure = try storeWithPatience(&successor, for: patience) {
            return .session(SessionReport(successor, isAmbiguous: false, storeFailure: failure))
        }
        guard !world.keyringWritesAtOnce else {
            return .session(SessionReport(successor, isAmbiguous: false))
        }
        guard slotHolds, world.isSlotKept else {
            successor = try ItemStore(world).outlast(successor)
            if slotHolds { try world.emptySlot() }
            return .session(SessionReport(successor, isAmbiguous: false))
        }
        return .session(
            SessionReport(successor, isAmbiguous: false, slotKeptFor: RotationTiming.lateWrite))
    }

    private enum Patience {
        /// The slot keeps what cannot be stored, as long as somebody keeps the slot.
        case brief
        /// This process is the only one that has it.
        case endless
    }

    /// Stores the successor and empties the slot, unless the keyring writes late; the reason if it could
    /// not be stored in time.
    private func storeWithPatience(
        _ successor: inout StoredSession, for patience: Patience = .brief
    ) throws(World.Interruption) -> Failure? {
        let began = world.now().boot
        while true {
            // It may be stored later than it came, and the hold counts from the store. The slot keeps
            // the time it has: writing it again could tear it, and it may be all that there is.
            successor.header.notBefore = ItemStore(world).hold(of: successor.header)
            guard let failure = try store(successor) else {
                if world.keyringWritesAtOnce { try world.emptySlot() }
                return nil
            }
            let age = world.now().boot - began
            let isLate = age >= RotationTiming.storePatience
            if isLate, patience == .brief, world.isSlotKept { return failure }
            try world.announce(
                .retrying(Failure(.successorUnstored, failure.detail, cause: failure.kind)))
            try world.pause(for: RotationTiming.storeWait(after: age))
        }
    }

    /// Written, read back and equal, and safe from a power cut.
    private func store(_ session: StoredSession) throws(World.Interruption) -> Failure? {
        try ItemStore(world).store(session)
    }

    /// An exchange may have died between writing and syncing: makes up for what it left out.
    private func confirm(_ session: StoredSession) throws(World.Interruption) -> Failure? {
        try ItemStore(world).confirm(session)
    }

    /// Remembers a `Retry-After` across restarts, in the item.
    private func obey(
        _ wait: TimeSpan?, _ spread: TimeSpan, _ words: String, _ session: StoredSession
    ) throws(World.Interruption) -> ExchangeOutcome {
        guard let wait else { return .failed(Failure(.throttled, words)) }
        let span = RotationTiming.obeyed(
            retryAfter: wait, spread: spread, draw: world.draw())
        var waiting = session
        waiting.header.notBefore = NotBefore(
            since: Stamp(world.now(), boot: world.boot), span: span)
        // A failure is ignored: canopyd is told the wait as well, and only a restart would ask
        // too early.
        _ = try store(waiting)
        return .failed(Failure(.throttled, words, wait: span))
    }

    /// A verdict is about bytes (I4), and final once it is recorded.
    private func bury(
        _ session: StoredSession, _ words: String, _ reason: SignInReason
    ) throws(World.Interruption) -> ExchangeOutcome {
        let position = session.header.position
        // Unread, the keyring may hold a newer token, and unrecorded, the end must not be reported: a
        // restart would present the dead token again.
        judging: while true {
            let failure: Failure
            switch try world.readState() {
            case .failed(let cause):
                failure = cause
            case .found(let state):
                switch try world.readItem(knowing: state.signIns) {
                case .failed(let cause):
                    failure = cause
                case .found(.session(let stored))
                where stored.header.signIn == position.signIn
                    && stored.header.generation > position.number:
                    return .session(SessionReport(stored, isAmbiguous: false))
                case .found:
                    var signIns = state.signIns ?? KnownSignIns()
                    signIns.bury(
                        KnownSignIns.Death(
                            signIn: position.signIn, generation: position.number, reason: reason,
                            at: world.now().wall))
                    guard let cause = try world.writeSignIns(signIns) else { break judging }
                    failure = cause
                }
            }
            try world.announce(
                .retrying(
                    Failure(
                        failure.kind,
                        "the server's word that the session is over waits for this: "
                            + failure.detail)))
            try world.pause(for: BackOff.start)
        }
        try world.emptySlot()
        // A failure is ignored: the item is dead by record, and is never read as anything else.
        _ = try world.deleteItem()
        _ = try world.syncKeyring()
        return .signInRequired(reason, words, account: session.header.account)
    }
}
