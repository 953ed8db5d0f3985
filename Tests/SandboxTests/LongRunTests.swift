import AgentCore
import SandboxRules
import Testing

@Suite("What the ledger lets go of")
struct LongRunTests {
    /// Remembers every token and follows every link: slow, and plainly the guide's rules.
    private struct Archive {
        private struct Entry {
            let family: Int
            var isPresented = false
            var retiredAt: WallTime?
        }

        private var entries: [Entry] = []
        private var current: [Int: Int] = [:]
        private var ended: Set<Int> = []
        let grace: TimeSpan
        let answer: ServerRules.GraceAnswer

        init(grace: TimeSpan, answer: ServerRules.GraceAnswer) {
            self.grace = grace
            self.answer = answer
        }

        enum Outcome: Equatable {
            case rotated, harmlessRetry, familyRevoked, identityRevoked, ended
        }

        mutating func signIn(_ family: Int) {
            current[family] = entries.count
            entries.append(Entry(family: family))
        }

        /// The families here are all of one identity.
        mutating func present(_ token: Int, at now: WallTime) -> Outcome {
            let family = entries[token].family
            guard !ended.contains(family) else { return .ended }
            guard let retiredAt = entries[token].retiredAt else {
                issue(for: token, at: now)
                return .rotated
            }
            // Tokens are numbered as they were issued: what follows in the family is a successor.
            let successors = entries.indices.filter { $0 > token && entries[$0].family == family }
            if successors.contains(where: { entries[$0].isPresented }) {
                ended.formUnion(current.keys)
                return .identityRevoked
            }
            guard now - retiredAt <= grace else {
                ended.insert(family)
                return .familyRevoked
            }
            switch answer {
            case .sameSuccessor: entries[token].isPresented = true
            case .newSuccessor: issue(for: token, at: now)
            }
            return .harmlessRetry
        }

        private mutating func issue(for token: Int, at now: WallTime) {
            let family = entries[token].family
            entries[token].isPresented = true
            if let replaced = current[family] { entries[replaced].retiredAt = now }
            current[family] = entries.count
            entries.append(Entry(family: family))
        }

        var count: Int { entries.count }
        func currentToken(_ family: Int) -> Int? { current[family] }
        func isEnded(_ family: Int) -> Bool { ended.contains(family) }
    }

    @Test(
        "A ledger that forgets decides like an archive that keeps everything",
        arguments: [ServerRules.GraceAnswer.sameSuccessor, .newSuccessor])
    func agreesWithArchive(answer: ServerRules.GraceAnswer) {
        var generator = SplitMix(state: 7)
        var seen: [Archive.Outcome: Int] = [:]
        for _ in 0..<3000 {
            var ledger = SessionLedger()
            ledger.rules.graceAnswer = answer
            ledger.rules.grace = .seconds(10)
            var archive = Archive(grace: .seconds(10), answer: answer)
            let key = ledger.addKey(delivery: .body)
            let identity = ledger.addIdentity(email: "ada@example.com", password: "one")
            var now = WallTime(seconds: 1_700_000_000)
            // Numbers of the archive's tokens are the ledger's ids.
            for family in 0..<3 {
                archive.signIn(family)
                let id = RefreshTokenID(UInt64(family))
                let signedIn = ledger.signIn(key: key, identity: identity, fresh: id, at: now)
                #expect(signedIn?.number == family)
            }
            for _ in 0..<30 {
                // Short steps for retries, long ones that pass the grace.
                let step = generator.below(4) == 0 ? 12_000 : 1500
                now = now + .milliseconds(Int64(generator.below(step)))
                // Mostly recent tokens, so that walks last; sometimes any.
                let token =
                    generator.below(20) == 0
                    ? generator.below(archive.count)
                    : max(0, archive.count - 1 - generator.below(4))
                let fresh = RefreshTokenID(UInt64(archive.count))
                let outcome = ledger.refresh(
                    RefreshTokenID(UInt64(token)), fresh: fresh, at: now)
                let expected = archive.present(token, at: now)
                seen[expected, default: 0] += 1
                switch (outcome, expected) {
                case (.rotated, .rotated), (.harmlessRetry, .harmlessRetry),
                    (.familyRevoked, .familyRevoked), (.identityRevoked, .identityRevoked),
                    (.refused(.ended), .ended):
                    break
                default:
                    Issue.record("\(outcome), where the archive has \(expected)")
                    return
                }
                for family in ledger.allFamilies where ledger.ending(of: family) == nil {
                    let current = archive.currentToken(family.number)
                    #expect(ledger.currentToken(of: family).number == current.map(UInt64.init))
                }
            }
        }
        for outcome in [
            Archive.Outcome.rotated, .harmlessRetry, .familyRevoked, .identityRevoked, .ended,
        ] {
            #expect(seen[outcome, default: 0] > 100, "\(outcome) was hardly tried: \(seen)")
        }
    }

    @Test("After 200,000 rotations the first token is still known as retired, and is theft")
    func ancientToken() throws {
        let house = Household { $0.keepsHistory = false }
        let session = try #require(house.signIn())
        var token = session.token
        for _ in 0..<200_000 { token = try #require(house.rotate(token)) }
        #expect(house.ledger.generation(of: session.family) == 200_000)
        #expect(house.refresh(session.token) == .identityRevoked)
    }

    @Test("Of a family's presentations the latest are kept, and every one is counted")
    func historyIsBounded() throws {
        let house = Household()
        let session = try #require(house.signIn())
        var token = session.token
        for _ in 0..<5000 {
            let family = house.ledger.requestArrived(token)
            #expect(family == session.family)
            house.ledger.requestLeft(session.family)
            token = try #require(house.rotate(token))
        }
        let history = house.ledger.history(of: session.family)
        #expect(history.last?.generation == 4999)
        #expect((Limits.sandboxHistory...2 * Limits.sandboxHistory).contains(history.count))
        #expect(house.ledger.arrivals(of: session.family).count <= 2 * Limits.sandboxHistory)
        #expect(house.ledger.counters(of: session.family).refreshRequests == 5000)
        #expect(house.ledger.counters(of: session.family).arrivals == 5000)
    }

    private struct SplitMix {
        var state: UInt64

        mutating func below(_ bound: Int) -> Int {
            state &+= 0x9e37_79b9_7f4a_7c15
            var z = state
            z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
            z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
            return Int((z ^ (z >> 31)) % UInt64(bound))
        }
    }
}
