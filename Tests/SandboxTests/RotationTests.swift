import AgentCore
import SandboxRules
import Testing

@Suite("Rotation and replay")
struct RotationTests {
    @Test("Every refresh returns another token than the one presented")
    func alwaysAnother() throws {
        let house = Household()
        var token = try #require(house.signIn()).token
        var seen: Set = [token]
        for generation in 1...100 {
            token = try #require(house.rotate(token))
            #expect(seen.insert(token).inserted)
            let family = try #require(house.ledger.family(of: token))
            #expect(house.ledger.generation(of: family) == generation)
        }
    }

    @Test("A retired token presented after the grace ends its own session and no other")
    func replayEndsTheFamily() throws {
        let house = Household()
        let first = try #require(house.signIn())
        let other = try #require(house.signIn())
        let successor = try #require(house.rotate(first.token))
        house.wait(.seconds(60))
        #expect(house.refresh(first.token) == .familyRevoked)
        #expect(house.refresh(successor) == .refused(.ended))
        #expect(house.ledger.ending(of: first.family) == .replay)
        #expect(house.rotate(other.token) != nil)
        #expect(house.ledger.familyRevocations == 1)
        #expect(house.ledger.identityRevocations == 0)
    }

    @Test("A token replayed moments after its rotation, its successor unused, is a harmless retry")
    func lostAnswer() throws {
        let house = Household()
        let session = try #require(house.signIn())
        let lost = try #require(house.rotate(session.token))
        house.wait(.seconds(2))
        let again = try #require(house.retry(session.token))
        #expect(again == lost)
        #expect(house.rotate(again) != nil)
        #expect(house.ledger.ending(of: session.family) == nil)
        #expect(house.ledger.counters(of: session.family).harmlessRetries == 1)
    }

    @Test("The grace includes its last instant and nothing after it")
    func graceEdges() throws {
        for (late, isHarmless) in [
            (Int64(0), true), (9_999, true), (10_000, true), (10_001, false),
        ] {
            let house = Household { $0.grace = .seconds(10) }
            let session = try #require(house.signIn())
            _ = try #require(house.rotate(session.token))
            house.wait(.milliseconds(late))
            #expect((house.retry(session.token) != nil) == isHarmless, "after \(late) ms")
            #expect((house.ledger.ending(of: session.family) == nil) == isHarmless)
        }
    }

    @Test("With a grace of nothing, only a replay in the same instant is harmless")
    func noGrace() throws {
        let house = Household { $0.grace = .zero }
        let session = try #require(house.signIn())
        _ = try #require(house.rotate(session.token))
        #expect(house.retry(session.token) != nil)
        house.wait(.milliseconds(1))
        #expect(house.refresh(session.token) == .familyRevoked)
    }

    @Test(
        "A replay whose successor was used ends every session of the identity, within the grace too"
    )
    func theft() throws {
        for late in [TimeSpan.zero, .seconds(5), .seconds(86_400)] {
            let house = Household()
            let stolen = try #require(house.signIn())
            let web = try #require(house.signIn(house.web))
            let stranger = try #require(house.signIn(as: house.grace))
            let second = try #require(house.rotate(stolen.token))
            let third = try #require(house.rotate(second))
            house.wait(late)
            #expect(house.refresh(stolen.token) == .identityRevoked)
            #expect(house.refresh(third) == .refused(.ended))
            #expect(house.refresh(web.token) == .refused(.ended))
            #expect(house.ledger.ending(of: web.family) == .theft)
            #expect(house.ledger.sessions(of: house.ada, at: house.now).isEmpty)
            #expect(house.rotate(stranger.token) != nil, "another identity's session goes on")
            #expect(house.ledger.identityRevocations(of: house.ada) == 1)
            #expect(house.ledger.identityRevocations(of: house.grace) == 0)
        }
    }

    @Test("Of a token many generations old, the used successor is seen as well")
    func ancientToken() throws {
        let house = Household()
        let session = try #require(house.signIn())
        var token = session.token
        for _ in 0..<1000 { token = try #require(house.rotate(token)) }
        #expect(house.refresh(session.token) == .identityRevoked)
    }

    @Test("After an identity's sessions were ended, it can sign in again")
    func signInAfterTheft() throws {
        let house = Household()
        let first = try #require(house.signIn())
        let second = try #require(house.rotate(first.token))
        _ = try #require(house.rotate(second))
        #expect(house.refresh(first.token) == .identityRevoked)
        let again = try #require(house.signIn())
        #expect(house.rotate(again.token) != nil)
    }

    @Test("A second and a third replay in the grace are as harmless as the first")
    func manyReplays() throws {
        for answer in [ServerRules.GraceAnswer.sameSuccessor, .newSuccessor] {
            let house = Household { $0.graceAnswer = answer }
            let session = try #require(house.signIn())
            var latest = try #require(house.rotate(session.token))
            for _ in 0..<3 {
                house.wait(.seconds(3))
                latest = try #require(house.retry(session.token))
            }
            #expect(house.rotate(latest) != nil)
        }
    }

    @Test("The grace counts from the rotation: a retry does not prolong it")
    func graceIsNotProlonged() throws {
        for answer in [ServerRules.GraceAnswer.sameSuccessor, .newSuccessor] {
            let house = Household { $0.graceAnswer = answer }
            let session = try #require(house.signIn())
            _ = try #require(house.rotate(session.token))
            house.wait(.seconds(8))
            _ = try #require(house.retry(session.token))
            house.wait(.seconds(8))
            #expect(house.refresh(session.token) == .familyRevoked)
        }
    }

    @Test("A retry's new successor retires the lost one, which then is itself a retired token")
    func newSuccessorRetires() throws {
        let house = Household { $0.graceAnswer = .newSuccessor }
        let session = try #require(house.signIn())
        let lost = try #require(house.rotate(session.token))
        let given = try #require(house.retry(session.token))
        #expect(given != lost)
        #expect(house.ledger.currentToken(of: session.family) == given)
        #expect(house.ledger.generation(of: session.family) == 1)
        house.wait(.seconds(11))
        #expect(house.refresh(lost) == .familyRevoked)
    }

    @Test("The lost successor presented after the new one was used is theft")
    func lostSuccessorAfterUse() throws {
        let house = Household { $0.graceAnswer = .newSuccessor }
        let session = try #require(house.signIn())
        let lost = try #require(house.rotate(session.token))
        let given = try #require(house.retry(session.token))
        _ = try #require(house.rotate(given))
        #expect(house.refresh(lost) == .identityRevoked)
    }

    @Test("A token any of whose successors was used is theft, even one that was replaced")
    func anySuccessorCounts() throws {
        let house = Household { $0.graceAnswer = .newSuccessor }
        let session = try #require(house.signIn())
        let first = try #require(house.rotate(session.token))
        _ = try #require(house.retry(session.token))
        // The late reader of the first answer uses it in good faith …
        _ = try #require(house.retry(first))
        // … and so the oldest token has a used successor.
        #expect(house.refresh(session.token) == .identityRevoked)
    }

    @Test("Of three successors of one token, the oldest knows that the youngest was used")
    func chainOfReplaced() throws {
        let house = Household { $0.graceAnswer = .newSuccessor }
        let session = try #require(house.signIn())
        let first = try #require(house.rotate(session.token))
        _ = try #require(house.retry(session.token))
        let third = try #require(house.retry(session.token))
        _ = try #require(house.rotate(third))
        #expect(house.refresh(first) == .identityRevoked)
    }

    @Test("Two refreshes with one token: the round after them, one of the two trips the alarm")
    func twoRefreshers() throws {
        let house = Household()
        let session = try #require(house.signIn())
        let mine = try #require(house.rotate(session.token))
        let theirs = try #require(house.retry(session.token))
        let next = try #require(house.rotate(mine))
        #expect(house.retry(theirs) != nil)
        _ = try #require(house.rotate(next))
        #expect(house.refresh(theirs) == .identityRevoked)
    }

    @Test("A token that was never issued is refused and touches nobody")
    func unknown() throws {
        let house = Household()
        let session = try #require(house.signIn())
        #expect(house.refresh(RefreshTokenID(1 << 40)) == .refused(.unknown))
        #expect(house.rotate(session.token) != nil)
    }

    @Test("A refresh token lives its lifetime from its issue, each rotation anew")
    func lifetime() throws {
        let house = Household { $0.refreshTokenLifetime = .seconds(100) }
        let session = try #require(house.signIn())
        house.wait(.milliseconds(99_999))
        let next = try #require(house.rotate(session.token))
        house.wait(.milliseconds(99_999))
        #expect(house.ledger.sessions(of: house.ada, at: house.now).count == 1)
        house.wait(.milliseconds(1))
        #expect(house.ledger.sessions(of: house.ada, at: house.now).isEmpty)
        #expect(house.refresh(next) == .refused(.expired))
    }

    @Test("An expired current token harms no other session")
    func expiryIsNoTheft() throws {
        let house = Household { $0.refreshTokenLifetime = .seconds(100) }
        let old = try #require(house.signIn())
        house.wait(.seconds(50))
        let young = try #require(house.signIn())
        house.wait(.seconds(60))
        #expect(house.refresh(old.token) == .refused(.expired))
        #expect(house.rotate(young.token) != nil)
    }
}
