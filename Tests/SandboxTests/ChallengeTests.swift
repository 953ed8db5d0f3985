import AgentCore
import SandboxRules
import Testing

@Suite("Second factors")
struct ChallengeTests {
    private let house = Household()
    private let expected: SignInChallenges.Outcome

    init() {
        expected = .accepted(house.native, house.ada)
    }

    private func opened() -> SignInChallenges {
        var challenges = SignInChallenges()
        challenges.require(
            SecondFactors(
                totp: "135790", emailCode: "24681357", recoveryCodes: ["ABCD-EFGH-IJKL-MNOP"]),
            of: house.ada)
        _ = challenges.open(1, key: house.native, identity: house.ada, at: house.now)
        return challenges
    }

    @Test("Only whom it was asked of needs a second factor")
    func required() {
        let challenges = opened()
        #expect(challenges.areRequired(of: house.ada))
        #expect(!challenges.areRequired(of: house.grace))
    }

    @Test("The right code is accepted once: an answered challenge is gone")
    func once() {
        var challenges = opened()
        let first = challenges.answer(1, .totp, code: "135790", at: house.now)
        let second = challenges.answer(1, .totp, code: "135790", at: house.now)
        #expect(first == expected)
        #expect(second == .gone)
    }

    @Test("Four wrong codes leave a challenge open, five lock it even for the right one")
    func lock() {
        for (wrong, outcome) in [(4, expected), (5, SignInChallenges.Outcome.gone)] {
            var challenges = opened()
            for _ in 0..<wrong {
                let refused = challenges.answer(1, .totp, code: "000000", at: house.now)
                #expect(refused == .wrongCode)
            }
            let last = challenges.answer(1, .totp, code: "135790", at: house.now)
            #expect(last == outcome)
        }
    }

    @Test("A challenge is over in the instant that it names")
    func expiry() {
        var challenges = opened()
        let end = house.now + SignInChallenges.lifetime
        let late = challenges.answer(1, .totp, code: "135790", at: end)
        #expect(late == .gone)
        let inTime = challenges.answer(
            1, .totp, code: "135790", at: WallTime(milliseconds: end.milliseconds - 1))
        #expect(inTime == expected)
    }

    @Test("The e-mail's code counts after it was sent, and it is sent once a minute")
    func email() {
        var challenges = opened()
        let early = challenges.answer(1, .emailCode, code: "24681357", at: house.now)
        #expect(early == .wrongCode)
        let first = challenges.sendEmail(1, at: house.now)
        let second = challenges.sendEmail(1, at: house.now + .seconds(59))
        let third = challenges.sendEmail(1, at: house.now + .seconds(60))
        #expect([first, second, third] == [.sent, .tooSoon(.seconds(1)), .sent])
        let answer = challenges.answer(1, .emailCode, code: "24681357", at: house.now)
        #expect(answer == expected)
        let after = challenges.sendEmail(1, at: house.now)
        #expect(after == .gone)
    }

    @Test("A recovery code counts once in a lifetime, with or without its dashes")
    func recovery() {
        var challenges = opened()
        let first = challenges.answer(1, .recoveryCode, code: "abcdefghijklmnop", at: house.now)
        #expect(first == expected)
        _ = challenges.open(2, key: house.native, identity: house.ada, at: house.now)
        let again = challenges.answer(2, .recoveryCode, code: "ABCD-EFGH-IJKL-MNOP", at: house.now)
        #expect(again == .wrongCode)
    }
}
