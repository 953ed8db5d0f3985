package import AgentCore

/// Names a refresh token; the token's text is its owner's business.
package struct RefreshTokenID: Hashable, Sendable {
    /// Any number that no other token of the ledger has.
    package let number: UInt64

    /// The token of that number, issued or not.
    package init(_ number: UInt64) {
        self.number = number
    }
}

/// Names a publishable key of one ledger.
package struct KeyID: Hashable, Sendable {
    let index: Int
}

/// Names an identity of one ledger.
package struct IdentityID: Hashable, Sendable {
    let index: Int

    /// Counts from 0 in the order of being added.
    package var number: Int { index }
}

/// Names a session, and so its family of refresh tokens, of one ledger.
package struct FamilyID: Hashable, Sendable {
    let index: Int

    /// Counts from 0 in the order of the sign-ins.
    package var number: Int { index }
}

/// One line of an identity's list of sessions.
package struct SessionRow: Equatable, Sendable {
    /// The id of the session's current refresh token, so another one after each refresh.
    package let id: RefreshTokenID
    /// The session.
    package let family: FamilyID
    /// When the session was signed in.
    package let createdAt: WallTime
    /// When the current token expires; nil if none does.
    package let expiresAt: WallTime?
}

/// One time that a token was presented.
package struct Presentation: Equatable, Sendable {
    /// What was presented.
    package let token: RefreshTokenID
    /// The token's generation: 0 is the sign-in's.
    package let generation: Int
    /// When it was presented.
    package let at: WallTime
    /// What it led to.
    package let outcome: RefreshOutcome
}

/// What a test asks of a family.
package struct FamilyCounters: Equatable, Sendable {
    /// Times that a token of the family was presented.
    package private(set) var refreshRequests = 0

    /// Those of them that were harmless retries.
    package internal(set) var harmlessRetries = 0

    /// Times that a token was presented after one of a later generation.
    package private(set) var generationsPresentedBackwards = 0

    /// Refresh requests that have arrived with a token of the family.
    package private(set) var arrivals = 0

    /// Times that a request arrived after one with a token of a later generation.
    package private(set) var generationsArrivedBackwards = 0

    /// The latest generation that a request arrived with; -1 before the first.
    package private(set) var latestGenerationArrived = -1

    /// Refresh requests that have arrived and are not answered.
    package internal(set) var inFlight = 0

    /// The most that were in flight at one time.
    package internal(set) var maximumInFlight = 0

    /// The latest generation that was presented; -1 before the first.
    package private(set) var latestGenerationPresented = -1

    mutating func arrived(generation: Int) {
        arrivals += 1
        if generation < latestGenerationArrived { generationsArrivedBackwards += 1 }
        latestGenerationArrived = max(latestGenerationArrived, generation)
        inFlight += 1
        maximumInFlight = max(maximumInFlight, inFlight)
    }

    mutating func count(generation: Int) {
        refreshRequests += 1
        if generation < latestGenerationPresented { generationsPresentedBackwards += 1 }
        latestGenerationPresented = max(latestGenerationPresented, generation)
    }
}
