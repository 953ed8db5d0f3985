import AgentCore
import SandboxRules
import Testing

@Suite("Sessions, their ends, and what is counted")
struct SessionsTests {
    @Test("A session's row id is its current refresh token's and changes with each refresh")
    func rowIDs() throws {
        let house = Household()
        let session = try #require(house.signIn())
        let before = house.ledger.sessions(of: house.ada, at: house.now).map(\.id)
        let next = try #require(house.rotate(session.token))
        let after = house.ledger.sessions(of: house.ada, at: house.now).map(\.id)
        #expect(before == [session.token])
        #expect(after == [next])
    }

    @Test("A row id from before a refresh revokes nothing")
    func staleRow() throws {
        let house = Household()
        let session = try #require(house.signIn())
        let next = try #require(house.rotate(session.token))
        #expect(!house.revokeSession(row: session.token, of: house.ada))
        #expect(house.revokeSession(row: next, of: house.ada))
        #expect(!house.revokeSession(row: next, of: house.ada), "it is over already")
        #expect(house.refresh(next) == .refused(.ended))
    }

    @Test("Nobody revokes another identity's session")
    func foreignRow() throws {
        let house = Household()
        let session = try #require(house.signIn())
        #expect(!house.revokeSession(row: session.token, of: house.grace))
        #expect(house.rotate(session.token) != nil)
    }

    @Test("Revoking one session leaves the others")
    func revokeOne() throws {
        let house = Household()
        let one = try #require(house.signIn())
        let two = try #require(house.signIn())
        #expect(house.revokeSession(row: one.token, of: house.ada))
        #expect(house.refresh(one.token) == .refused(.ended))
        #expect(house.rotate(two.token) != nil)
    }

    @Test("Logging out ends one session, and its tokens are refused without an alarm")
    func logOut() throws {
        let house = Household()
        let one = try #require(house.signIn())
        let two = try #require(house.signIn())
        let next = try #require(house.rotate(one.token))
        house.ledger.logOut(one.family)
        #expect(house.refresh(one.token) == .refused(.ended))
        #expect(house.refresh(next) == .refused(.ended))
        #expect(house.ledger.ending(of: one.family) == .loggedOut)
        #expect(house.ledger.identityRevocations == 0)
        #expect(house.rotate(two.token) != nil)
    }

    @Test("An administrator ends all sessions of one identity, and is told how many were alive")
    func revokeAll() throws {
        let house = Household()
        let one = try #require(house.signIn())
        let two = try #require(house.signIn())
        let stranger = try #require(house.signIn(as: house.grace))
        house.ledger.logOut(one.family)
        let count = house.ledger.revokeAll(of: house.ada)
        #expect(count == 1)
        #expect(house.ledger.ending(of: one.family) == .loggedOut, "the first end stays")
        #expect(house.refresh(two.token) == .refused(.ended))
        #expect(house.rotate(stranger.token) != nil)
        #expect(house.ledger.identityRevocations == 0, "that counts replays alone")
    }

    @Test("Five sign-ins in fifteen minutes pass, the sixth is told how long to wait")
    func throttle() throws {
        let house = Household()
        for _ in 0..<5 {
            #expect(house.signInWait(address: 1) == nil)
            house.wait(.seconds(60))
        }
        #expect(house.signInWait(address: 1) == .seconds(600))
        #expect(house.signInWait(address: 2) == nil, "another address")
        house.wait(.milliseconds(599_999))
        #expect(house.signInWait(address: 1) == .milliseconds(1))
        house.wait(.milliseconds(1))
        #expect(house.signInWait(address: 1) == nil)
        #expect(house.signInWait(address: 1) == .seconds(60))
    }

    @Test("The throttle can be switched off")
    func throttleOff() {
        let house = Household { $0.throttlesSignIns = false }
        for _ in 0..<100 {
            #expect(house.signInWait(address: 1) == nil)
        }
    }

    @Test("An older generation presented after a newer is counted, a retry of the newest is not")
    func backwards() throws {
        let house = Household()
        let session = try #require(house.signIn())
        let second = try #require(house.rotate(session.token))
        _ = try #require(house.rotate(second))
        _ = try #require(house.retry(second))
        #expect(house.ledger.counters(of: session.family).generationsPresentedBackwards == 0)
        _ = house.refresh(session.token)
        let counters = house.ledger.counters(of: session.family)
        #expect(counters.generationsPresentedBackwards == 1)
        #expect(counters.refreshRequests == 4)
        #expect(house.ledger.history(of: session.family).map(\.generation) == [0, 1, 1, 0])
    }

    @Test("Without a history the counters are the same")
    func noHistory() throws {
        let house = Household { $0.keepsHistory = false }
        let session = try #require(house.signIn())
        let second = try #require(house.rotate(session.token))
        _ = house.refresh(second)
        _ = house.refresh(session.token)
        #expect(house.ledger.history(of: session.family).isEmpty)
        #expect(house.ledger.counters(of: session.family).generationsPresentedBackwards == 1)
    }

    @Test("The most requests in flight at once are remembered when they have left")
    func inFlight() throws {
        let house = Household()
        let session = try #require(house.signIn())
        house.arrive(session.token)
        house.ledger.requestLeft(session.family)
        #expect(house.ledger.counters(of: session.family).maximumInFlight == 1)
        house.arrive(session.token)
        house.arrive(session.token)
        house.ledger.requestLeft(session.family)
        house.ledger.requestLeft(session.family)
        let counters = house.ledger.counters(of: session.family)
        #expect(counters.maximumInFlight == 2)
        #expect(counters.inFlight == 0)
    }

    @Test("A request that is lost on the server still counts as having arrived, in its order")
    func arrivals() throws {
        let house = Household()
        let session = try #require(house.signIn())
        house.arrive(session.token)
        let next = try #require(house.rotate(session.token))
        house.arrive(next)
        house.arrive(session.token)
        let counters = house.ledger.counters(of: session.family)
        #expect(counters.arrivals == 3)
        #expect(counters.refreshRequests == 1)
        #expect(counters.generationsArrivedBackwards == 1)
        #expect(counters.generationsPresentedBackwards == 0)
        #expect(
            house.ledger.arrivals(of: session.family) == [session.token, next, session.token])
        house.arrive(RefreshTokenID(1 << 40))
        #expect(house.ledger.counters(of: session.family).arrivals == 3)
    }

    @Test("A copy of a ledger knows nothing of what happens to the other")
    func valueSemantics() throws {
        let house = Household()
        let session = try #require(house.signIn())
        var copy = house.ledger
        let outcome = copy.refresh(session.token, fresh: RefreshTokenID(1 << 40), at: house.now)
        #expect(outcome == .rotated(session.family, RefreshTokenID(1 << 40)))
        #expect(house.ledger.generation(of: session.family) == 0)
        #expect(house.rotate(session.token) != nil)
    }
}
