package import AgentCore

/// Canopy's keys, identities, sessions and refresh tokens, and the rules between them.
///
/// A value: no clock, no randomness, no text. Times and fresh token ids are arguments; how a token
/// looks is its owner's business. A refresh takes constant time; listings and the ending of all
/// sessions of an identity take as long as the identity has sessions.
///
/// A family is a session seen through its chain of refresh tokens; both words mean one thing.
package struct SessionLedger: Sendable {
    /// The switches, which may be turned while the ledger is in use.
    package var rules: ServerRules

    private var keys: [Key] = []
    private var identities: [IdentityRecord] = []
    private var families: [FamilyRecord] = []
    private var tokens: [TokenRecord] = []
    private var tokenIndices: [RefreshTokenID: Int] = [:]
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
        identities.firstIndex { $0.email == email }.map(IdentityID.init)
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
        let token = issue(fresh, family: family, predecessor: nil, generation: 0, at: now)
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
        guard let token = tokenIndices[presented] else { return .refused(.unknown) }
        let family = tokens[token].family
        let outcome = present(token, family: family, fresh: fresh, at: now)
        record(token, family: family, outcome: outcome, at: now)
        return outcome
    }

    private mutating func present(
        _ token: Int, family: FamilyID, fresh: RefreshTokenID, at now: WallTime
    ) -> RefreshOutcome {
        // A session that has ended answers 401 to every token it ever had, and nothing more
        // happens: there is nothing left in it for a thief, and the other sessions' owner has
        // been told, or has asked for it.
        guard families[family.index].ending == nil else { return .refused(.ended) }
        let identity = families[family.index].identity
        guard identities[identity.index].isActive else { return .refused(.identityInactive) }

        guard let successor = tokens[token].successor else {
            guard !isExpired(token, at: now) else { return .refused(.expired) }
            notePresented(token)
            return .rotated(family, rotate(token, fresh: fresh, at: now))
        }
        // A retired token. Was a successor of it presented? Then two parties hold this chain.
        guard !tokens[token].successorWasPresented, !wasPresented(from: successor) else {
            identityRevocations += 1
            identities[identity.index].revocations += 1
            end(identity, because: .theft)
            return .identityRevoked
        }
        guard now - tokens[token].retiredAt <= rules.grace else {
            familyRevocations += 1
            end(family, because: .replay)
            return .familyRevoked
        }
        families[family.index].counters.harmlessRetries += 1
        notePresented(token)
        switch rules.graceAnswer {
        case .sameSuccessor:
            guard !isExpired(successor, at: now) else { return .refused(.expired) }
            return .harmlessRetry(family, tokens[successor].id)
        case .newSuccessor:
            return .harmlessRetry(family, replaceSuccessor(of: token, by: fresh, at: now))
        }
    }

    private mutating func rotate(
        _ token: Int, fresh: RefreshTokenID, at now: WallTime
    ) -> RefreshTokenID {
        let family = tokens[token].family
        let next = issue(
            fresh, family: family, predecessor: token,
            generation: tokens[token].generation + 1, at: now)
        retire(token, successor: next, at: now)
        families[family.index].current = next
        return fresh
    }

    /// Answers a replay of `token` with a token of its own.
    ///
    /// The lost answer's successor is retired in its turn, so whoever got that answer late and
    /// presents it at once is a harmless retry as well, and later is a replay.
    private mutating func replaceSuccessor(
        of token: Int, by fresh: RefreshTokenID, at now: WallTime
    ) -> RefreshTokenID {
        let family = tokens[token].family
        let replaced = families[family.index].current
        let next = issue(
            fresh, family: family, predecessor: token,
            generation: tokens[token].generation + 1, at: now)
        retire(replaced, successor: next, at: now)
        // The window counts from the rotation, not from the latest retry: `retiredAt` stays.
        tokens[token].successor = next
        families[family.index].current = next
        return fresh
    }

    private mutating func issue(
        _ id: RefreshTokenID, family: FamilyID, predecessor: Int?, generation: Int,
        at now: WallTime
    ) -> Int {
        precondition(tokenIndices[id] == nil, "a token id was used twice")
        tokenIndices[id] = tokens.count
        tokens.append(
            TokenRecord(
                id: id, family: family, predecessor: predecessor, generation: generation,
                issuedAt: now))
        return tokens.count - 1
    }

    private mutating func retire(_ token: Int, successor: Int, at now: WallTime) {
        tokens[token].successor = successor
        tokens[token].retiredAt = now
    }

    private mutating func notePresented(_ token: Int) {
        tokens[token].wasPresented = true
        if let predecessor = tokens[token].predecessor {
            tokens[predecessor].successorWasPresented = true
        }
    }

    /// Whether `token`, or one that replaced it before anybody presented it, was presented.
    private func wasPresented(from token: Int) -> Bool {
        var token = token
        while !tokens[token].wasPresented {
            guard let next = tokens[token].successor else { return false }
            token = next
        }
        return true
    }

    private func isExpired(_ token: Int, at now: WallTime) -> Bool {
        guard let lifetime = rules.refreshTokenLifetime else { return false }
        return now - tokens[token].issuedAt >= lifetime
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
        guard let token = tokenIndices[row] else { return false }
        let family = tokens[token].family
        guard families[family.index].identity == identity,
            families[family.index].current == token, families[family.index].ending == nil
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
            let token = tokens[record.current]
            return SessionRow(
                id: token.id, family: family, createdAt: record.createdAt,
                expiresAt: rules.refreshTokenLifetime.map { token.issuedAt + $0 })
        }
    }

    /// The family that the token belongs to, ended or not.
    package func family(of token: RefreshTokenID) -> FamilyID? {
        tokenIndices[token].map { tokens[$0].family }
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
        tokens[families[family.index].current].id
    }

    /// How often the family has rotated since its sign-in.
    package func generation(of family: FamilyID) -> Int {
        tokens[families[family.index].current].generation
    }

    /// What was counted of the family so far.
    package func counters(of family: FamilyID) -> FamilyCounters {
        families[family.index].counters
    }

    /// What was presented, in order; empty unless the rules keep a history.
    package func history(of family: FamilyID) -> [Presentation] {
        families[family.index].history
    }

    /// The tokens of the requests that arrived, in order; empty unless the rules keep a history.
    package func arrivals(of family: FamilyID) -> [RefreshTokenID] {
        families[family.index].arrivals
    }

    /// How often a replay has ended all of this identity's sessions.
    package func identityRevocations(of identity: IdentityID) -> Int {
        identities[identity.index].revocations
    }

    // MARK: Counting

    private mutating func record(
        _ token: Int, family: FamilyID, outcome: RefreshOutcome, at now: WallTime
    ) {
        let generation = tokens[token].generation
        families[family.index].counters.count(generation: generation)
        if rules.keepsHistory {
            families[family.index].history.append(
                Presentation(
                    token: tokens[token].id, generation: generation, at: now, outcome: outcome))
        }
    }

    /// A refresh request with that token has arrived, whatever becomes of it; the token's family,
    /// or nil if it was never issued.
    ///
    /// Arrivals are what the client did; presentations, what the server made of it.
    package mutating func requestArrived(_ presented: RefreshTokenID) -> FamilyID? {
        guard let token = tokenIndices[presented] else { return nil }
        let family = tokens[token].family
        families[family.index].counters.arrived(generation: tokens[token].generation)
        if rules.keepsHistory { families[family.index].arrivals.append(presented) }
        return family
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
    var current: Int
    var ending: Ending?
    var counters = FamilyCounters()
    var history: [Presentation] = []
    var arrivals: [RefreshTokenID] = []
}

private struct TokenRecord: Sendable {
    let id: RefreshTokenID
    let family: FamilyID
    let predecessor: Int?
    let generation: Int
    let issuedAt: WallTime
    /// Set when the token is retired.
    var successor: Int?
    /// When the token was retired; means nothing before.
    var retiredAt = WallTime(milliseconds: 0)
    var wasPresented = false
    /// Whether any token that was issued for this one was presented.
    var successorWasPresented = false
}
