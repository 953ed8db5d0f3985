package import AgentCore

/// Canopy's keys, identities, sessions and refresh tokens, and the rules between them.
///
/// A value: no clock, no randomness, no text. Times and fresh token ids are arguments; how a token
/// looks is its owner's business. A refresh takes constant time; listings and the ending of all
/// sessions of an identity take as long as the identity has sessions. Of a token that can only be
/// theft any more, its family and generation are kept, 16 bytes with the id, and of presentations
/// the latest: a soak test of days stays small.
///
/// A family is a session seen through its chain of refresh tokens; both words mean one thing.
package struct SessionLedger: Sendable {
    /// The switches, which may be turned while the ledger is in use.
    package var rules: ServerRules

    private var keys: [Key] = []
    private var identities: [IdentityRecord] = []
    private var families: [FamilyRecord] = []
    private var identityNumbers: [String: Int] = [:]
    /// Every token ever issued.
    ///
    /// What may still pass stands in its family besides.
    private var issued: [RefreshTokenID: Origin] = [:]
    private var throttle = LoginThrottle()

    /// Families that a replay has ended, each for itself.
    package private(set) var familyRevocations = 0

    /// Times that a replay has ended every session of an identity.
    package private(set) var identityRevocations = 0

    /// An empty ledger: no keys, no identities, no sessions.
    package init(rules: ServerRules = ServerRules()) {
        self.rules = rules
    }

    // MARK: Keys and identities

    /// Registers a publishable key, which decides how the sessions it starts deliver.
    package mutating func addKey(delivery: Delivery) -> KeyID {
        keys.append(Key(delivery: delivery, isRevoked: false))
        return KeyID(index: keys.count - 1)
    }

    /// Stops new sign-ins with the key.
    ///
    /// Sessions signed in go on.
    package mutating func revokeKey(_ key: KeyID) {
        keys[key.index].isRevoked = true
    }

    /// Whether the key has been revoked.
    package func isRevoked(_ key: KeyID) -> Bool {
        keys[key.index].isRevoked
    }

    /// Adds an end user.
    ///
    /// Passwords are made up and printed at start: nobody's secret.
    package mutating func addIdentity(email: String, password: String) -> IdentityID {
        precondition(identityNumbers[email] == nil, "an e-mail address was added twice")
        identityNumbers[email] = identities.count
        identities.append(IdentityRecord(email: email, password: password))
        return IdentityID(index: identities.count - 1)
    }

    /// The identity's e-mail address, as it was added.
    package func email(of identity: IdentityID) -> String {
        identities[identity.index].email
    }

    /// An inactive identity can neither sign in nor refresh.
    package mutating func setActive(_ identity: IdentityID, _ isActive: Bool) {
        identities[identity.index].isActive = isActive
    }

    /// Whether the identity may sign in and refresh.
    package func isActive(_ identity: IdentityID) -> Bool {
        identities[identity.index].isActive
    }

    /// Every identity, in the order of being added.
    package var allIdentities: [IdentityID] { identities.indices.map(IdentityID.init) }

    /// The identity with that e-mail address, compared as written.
    package func identity(email: String) -> IdentityID? {
        identityNumbers[email].map(IdentityID.init)
    }

    // MARK: Signing in

    /// Counts a sign-in request of `address`; nil if it may go on, else how long it has to wait.
    package mutating func signInWait(address: UInt64, at now: WallTime) -> TimeSpan? {
        guard rules.throttlesSignIns else { return nil }
        return throttle.wait(address: address, at: now)
    }

    /// Checks key and password without starting anything.
    ///
    /// Throttling is a step before this one.
    package func checkSignIn(
        key: KeyID?, email: String, password: String
    ) -> SignInCheck {
        guard let key, !keys[key.index].isRevoked else { return .keyRefused }
        guard let identity = identity(email: email),
            identities[identity.index].password == password
        else { return .credentialsRefused }
        guard identities[identity.index].isActive else { return .identityInactive }
        return .accepted(key, identity)
    }

    /// Starts a session of `identity` whose first refresh token is `fresh`, a new id.
    ///
    /// The delivery is the key's, for the session's whole life. nil if the key is revoked or the
    /// identity inactive.
    package mutating func signIn(
        key: KeyID, identity: IdentityID, fresh: RefreshTokenID, at now: WallTime
    ) -> FamilyID? {
        guard !keys[key.index].isRevoked, identities[identity.index].isActive else { return nil }
        let family = FamilyID(index: families.count)
        let token = issue(fresh, family: family, generation: 0, at: now)
        families.append(
            FamilyRecord(
                identity: identity, delivery: keys[key.index].delivery, createdAt: now,
                current: token))
        identities[identity.index].families.append(family)
        return family
    }

    // MARK: Refreshing

    /// Presents a refresh token.
    ///
    /// `fresh`, a new id, is used if a token is issued.
    ///
    /// Takes no key: how to deliver is read off the session.
    package mutating func refresh(
        _ presented: RefreshTokenID, fresh: RefreshTokenID, at now: WallTime
    ) -> RefreshOutcome {
        guard let origin = issued[presented] else { return .refused(.unknown) }
        let outcome = present(presented, family: origin.familyID, fresh: fresh, at: now)
        record(presented, origin, outcome: outcome, at: now)
        return outcome
    }

    private mutating func present(
        _ presented: RefreshTokenID, family: FamilyID, fresh: RefreshTokenID, at now: WallTime
    ) -> RefreshOutcome {
        // A session that has ended answers 401 to every token it ever had, and nothing more
        // happens: there is nothing left in it for a thief, and the other sessions' owner has
        // been told, or has asked for it.
        guard families[family.index].ending == nil else { return .refused(.ended) }
        let identity = families[family.index].identity
        guard identities[identity.index].isActive else { return .refused(.identityInactive) }

        let current = families[family.index].current
        if presented == current.id {
            guard !isExpired(current, at: now) else { return .refused(.expired) }
            // Whatever is older has a used successor from here on.
            families[family.index].retired.removeAll(keepingCapacity: true)
            replaceCurrent(of: family, by: fresh, generation: current.generation + 1, at: now)
            return .rotated(family, fresh)
        }
        // A retired token. Was a later one presented? Then two parties hold this chain.
        guard
            let position = families[family.index].retired.firstIndex(where: { $0.id == presented })
        else {
            identityRevocations += 1
            identities[identity.index].revocations += 1
            end(identity, because: .theft)
            return .identityRevoked
        }
        let token = families[family.index].retired[position]
        // The grace counts from the rotation, not from the latest retry.
        guard now - token.retiredAt <= rules.grace else {
            familyRevocations += 1
            end(family, because: .replay)
            return .familyRevoked
        }
        families[family.index].retired.removeFirst(position)
        switch rules.graceAnswer {
        case .sameSuccessor:
            guard !isExpired(current, at: now) else { return .refused(.expired) }
            families[family.index].counters.harmlessRetries += 1
            return .harmlessRetry(family, current.id)
        case .newSuccessor:
            // The lost answer's token is retired in its turn: whoever got that answer late and
            // presents it at once is a harmless retry as well, and later is a replay.
            families[family.index].counters.harmlessRetries += 1
            replaceCurrent(of: family, by: fresh, generation: token.generation + 1, at: now)
            return .harmlessRetry(family, fresh)
        }
    }

    private mutating func replaceCurrent(
        of family: FamilyID, by fresh: RefreshTokenID, generation: Int, at now: WallTime
    ) {
        let replaced = families[family.index].current
        families[family.index].retired.append(
            RetiredToken(id: replaced.id, generation: replaced.generation, retiredAt: now))
        families[family.index].current = issue(
            fresh, family: family, generation: generation, at: now)
    }

    private mutating func issue(
        _ id: RefreshTokenID, family: FamilyID, generation: Int, at now: WallTime
    ) -> CurrentToken {
        let origin = Origin(family: UInt32(family.index), generation: UInt32(generation))
        let earlier = issued.updateValue(origin, forKey: id)
        precondition(earlier == nil, "a token id was used twice")
        return CurrentToken(id: id, generation: generation, issuedAt: now)
    }

    private func isExpired(_ token: CurrentToken, at now: WallTime) -> Bool {
        guard let lifetime = rules.refreshTokenLifetime else { return false }
        return now - token.issuedAt >= lifetime
    }

    // MARK: Ending sessions

    /// Ends a session, at its owner's request.
    package mutating func logOut(_ family: FamilyID) {
        end(family, because: .loggedOut)
    }

    /// Ends the session whose row has that id; false if `identity` has no such session now.
    ///
    /// A row's id is that of the session's current refresh token, so one from before a refresh
    /// names nothing.
    package mutating func revokeSession(row: RefreshTokenID, of identity: IdentityID) -> Bool {
        guard let family = family(of: row) else { return false }
        guard families[family.index].identity == identity,
            families[family.index].current.id == row, families[family.index].ending == nil
        else { return false }
        end(family, because: .revoked)
        return true
    }

    /// Ends every session of the identity, as an administrator does; how many there were.
    @discardableResult
    package mutating func revokeAll(of identity: IdentityID) -> Int {
        end(identity, because: .revoked)
    }

    private mutating func end(_ family: FamilyID, because ending: Ending) {
        // The first ending is the one that happened.
        if families[family.index].ending == nil { families[family.index].ending = ending }
    }

    @discardableResult
    private mutating func end(_ identity: IdentityID, because ending: Ending) -> Int {
        var ended = 0
        for family in identities[identity.index].families
        where families[family.index].ending == nil {
            end(family, because: ending)
            ended += 1
        }
        return ended
    }

    // MARK: Looking

    /// The sessions that the identity has now, the oldest first.
    package func sessions(of identity: IdentityID, at now: WallTime) -> [SessionRow] {
        identities[identity.index].families.compactMap { family in
            let record = families[family.index]
            guard record.ending == nil, !isExpired(record.current, at: now) else { return nil }
            return SessionRow(
                id: record.current.id, family: family, createdAt: record.createdAt,
                expiresAt: rules.refreshTokenLifetime.map { record.current.issuedAt + $0 })
        }
    }

    /// The family that the token belongs to, ended or not.
    package func family(of token: RefreshTokenID) -> FamilyID? {
        issued[token]?.familyID
    }

    /// Every family, ended ones included, in the order of their sign-ins.
    package var allFamilies: [FamilyID] { families.indices.map(FamilyID.init) }

    /// How the session hands out its refresh tokens, now and always.
    package func delivery(of family: FamilyID) -> Delivery { families[family.index].delivery }

    /// Whose session it is.
    package func identity(of family: FamilyID) -> IdentityID { families[family.index].identity }

    /// Why the session is over; nil while it is not.
    ///
    /// Expiry ends nothing: see ``sessions(of:at:)``.
    package func ending(of family: FamilyID) -> Ending? { families[family.index].ending }

    /// The token that the next refresh has to present.
    package func currentToken(of family: FamilyID) -> RefreshTokenID {
        families[family.index].current.id
    }

    /// How often the family has rotated since its sign-in.
    package func generation(of family: FamilyID) -> Int {
        families[family.index].current.generation
    }

    /// What was counted of the family so far.
    package func counters(of family: FamilyID) -> FamilyCounters {
        families[family.index].counters
    }

    /// What was presented lately, in order; empty unless the rules keep a history.
    package func history(of family: FamilyID) -> [Presentation] {
        families[family.index].history
    }

    /// The tokens of the requests that arrived lately, in order; empty unless the rules keep a
    /// history.
    package func arrivals(of family: FamilyID) -> [RefreshTokenID] {
        families[family.index].arrivals
    }

    /// How often a replay has ended all of this identity's sessions.
    package func identityRevocations(of identity: IdentityID) -> Int {
        identities[identity.index].revocations
    }

    // MARK: Counting

    private mutating func record(
        _ token: RefreshTokenID, _ origin: Origin, outcome: RefreshOutcome, at now: WallTime
    ) {
        let family = Int(origin.family)
        let generation = Int(origin.generation)
        families[family].counters.count(generation: generation)
        guard rules.keepsHistory else { return }
        Self.append(
            Presentation(token: token, generation: generation, at: now, outcome: outcome),
            to: &families[family].history)
    }

    /// A refresh request with that token has arrived, whatever becomes of it; the token's family,
    /// or nil if it was never issued.
    ///
    /// Arrivals are what the client did; presentations, what the server made of it.
    package mutating func requestArrived(_ presented: RefreshTokenID) -> FamilyID? {
        guard let origin = issued[presented] else { return nil }
        let family = Int(origin.family)
        families[family].counters.arrived(generation: Int(origin.generation))
        if rules.keepsHistory { Self.append(presented, to: &families[family].arrivals) }
        return origin.familyID
    }

    /// Drops the older half now and then, so that appending stays cheap.
    private static func append<Event>(_ event: Event, to events: inout [Event]) {
        if events.count >= 2 * Limits.sandboxHistory {
            events.removeFirst(events.count - Limits.sandboxHistory)
        }
        events.append(event)
    }

    /// A request that had arrived has been answered, or its connection is gone.
    package mutating func requestLeft(_ family: FamilyID) {
        families[family.index].counters.inFlight -= 1
    }
}

// MARK: - Records

private struct Key: Sendable {
    let delivery: Delivery
    var isRevoked: Bool
}

private struct IdentityRecord: Sendable {
    let email: String
    let password: String
    var isActive = true
    var families: [FamilyID] = []
    var revocations = 0
}

private struct FamilyRecord: Sendable {
    let identity: IdentityID
    let delivery: Delivery
    let createdAt: WallTime
    /// The one token that is not retired.
    var current: CurrentToken
    /// Retired tokens after which none was presented, in the order of their issue.
    ///
    /// Any other token that was issued, and is not current, has a used successor.
    var retired: [RetiredToken] = []
    var ending: Ending?
    var counters = FamilyCounters()
    var history: [Presentation] = []
    var arrivals: [RefreshTokenID] = []
}

private struct CurrentToken: Sendable {
    let id: RefreshTokenID
    let generation: Int
    let issuedAt: WallTime
}

private struct RetiredToken: Sendable {
    let id: RefreshTokenID
    let generation: Int
    let retiredAt: WallTime
}

/// Where a token comes from, in 8 bytes: there is one for every token ever issued.
private struct Origin: Sendable {
    let family: UInt32
    let generation: UInt32

    var familyID: FamilyID { FamilyID(index: Int(family)) }
}
