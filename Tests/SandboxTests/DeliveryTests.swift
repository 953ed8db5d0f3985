import AgentCore
import SandboxRules
import Testing

@Suite("Delivery and keys")
struct DeliveryTests {
    @Test("A native key's session hands its refresh token out in the body, a web key's by cookie")
    func followsTheKey() throws {
        let house = Household()
        let native = try #require(house.signIn(house.native))
        let web = try #require(house.signIn(house.web))
        #expect(house.ledger.delivery(of: native.family) == .body)
        #expect(house.ledger.delivery(of: web.family) == .cookie)
    }

    @Test("A session keeps its delivery through every rotation and harmless retry")
    func staysThroughRotations() throws {
        let house = Household { $0.graceAnswer = .newSuccessor }
        for (key, delivery) in [(house.native, Delivery.body), (house.web, .cookie)] {
            let session = try #require(house.signIn(key))
            var token = session.token
            for _ in 0..<50 {
                _ = try #require(house.rotate(token))
                token = try #require(house.retry(token))
                #expect(house.ledger.delivery(of: session.family) == delivery)
            }
        }
    }

    @Test("A refresh names no key, so revoking every key changes neither refreshes nor delivery")
    func refreshTakesNoKey() throws {
        let house = Household()
        let session = try #require(house.signIn(house.web))
        house.ledger.revokeKey(house.native)
        house.ledger.revokeKey(house.web)
        let next = try #require(house.rotate(session.token))
        #expect(house.ledger.family(of: next) == session.family)
        #expect(house.ledger.delivery(of: session.family) == .cookie)
    }

    @Test("Signing in again with the other key is the one way to another delivery")
    func anotherSignInAnotherDelivery() throws {
        let house = Household()
        let first = try #require(house.signIn(house.web))
        let second = try #require(house.signIn(house.native))
        #expect(first.family != second.family)
        #expect(house.ledger.delivery(of: first.family) == .cookie)
        #expect(house.ledger.delivery(of: second.family) == .body)
    }

    @Test("Both keys open the door to the same identities")
    func sameIdentities() {
        let house = Household()
        for key in [house.native, house.web] {
            #expect(
                house.ledger.checkSignIn(key: key, email: "ada@example.com", password: "one")
                    == .accepted(key, house.ada))
        }
    }

    @Test("A revoked key stops new sign-ins with it, and with no other key")
    func revokedKey() {
        let house = Household()
        house.ledger.revokeKey(house.native)
        #expect(
            house.ledger.checkSignIn(key: house.native, email: "ada@example.com", password: "one")
                == .keyRefused)
        #expect(house.signIn(house.native) == nil)
        #expect(house.signIn(house.web) != nil)
    }

    @Test("A revoked key signs nobody out: its sessions are listed and go on rotating")
    func revokedKeyKeepsSessions() throws {
        let house = Household()
        let session = try #require(house.signIn())
        house.ledger.revokeKey(house.native)
        var token = session.token
        for _ in 0..<5 { token = try #require(house.rotate(token)) }
        #expect(house.ledger.sessions(of: house.ada, at: house.now).map(\.id) == [token])
    }

    @Test("An unknown key, a wrong password and an unknown address are refused")
    func refusals() {
        let house = Household()
        let ledger = house.ledger
        #expect(
            ledger.checkSignIn(key: nil, email: "ada@example.com", password: "one") == .keyRefused)
        #expect(
            ledger.checkSignIn(key: house.native, email: "ada@example.com", password: "two")
                == .credentialsRefused)
        #expect(
            ledger.checkSignIn(key: house.native, email: "eve@example.com", password: "one")
                == .credentialsRefused)
    }

    @Test(
        "An inactive identity neither signs in nor refreshes, and its token is not spent by trying")
    func inactive() throws {
        let house = Household()
        let session = try #require(house.signIn())
        house.ledger.setActive(house.ada, false)
        #expect(
            house.ledger.checkSignIn(key: house.native, email: "ada@example.com", password: "one")
                == .identityInactive)
        #expect(house.signIn() == nil)
        #expect(house.refresh(session.token) == .refused(.identityInactive))
        house.ledger.setActive(house.ada, true)
        #expect(house.rotate(session.token) != nil)
    }
}
