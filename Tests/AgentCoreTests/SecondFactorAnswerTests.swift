import AgentCore
import Testing

@Suite("The answer to a second factor")
struct SecondFactorAnswerTests {
    private static let id = Example.signIn.text

    private func parse(_ body: String) -> Result<SecondFactorAnswer, SecondFactorAnswer.Malformed> {
        Result { () throws(SecondFactorAnswer.Malformed) in
            try SecondFactorAnswer(parsing: Example.secret(body), in: .ordinary)
        }
    }

    @Test("Every factor takes a code", arguments: SecondFactorAnswer.Factor.allCases)
    func proves(_ factor: SecondFactorAnswer.Factor) throws {
        let answer = try parse(
            #"{"challenge":"\#(Self.id)","factor":"\#(factor.rawValue)","code":"ABCD-1","send":false}"#
        ).get()
        #expect(answer.challenge == Example.signIn)
        guard case .prove(factor, let code) = answer.step else {
            Issue.record("not a proof of \(factor)")
            return
        }
        #expect(text(code) == "ABCD-1")
    }

    @Test("An email is sent on request")
    func sends() throws {
        let answer = try parse(
            #"{"challenge":"\#(Self.id)","factor":"email_otp","send":true}"#
        ).get()
        guard case .sendEmail = answer.step else {
            Issue.record("nothing is sent")
            return
        }
    }

    @Test(
        "What is missing or wrong is named",
        arguments: [
            ("", SecondFactorAnswer.Malformed.notAnObject), ("[]", .notAnObject),
            (#"{"factor":"totp","code":"1"}"#, .challenge),
            (#"{"challenge":"c","factor":"totp","code":"1"}"#, .challenge),
            (#"{"challenge":"\#(id)","code":"1"}"#, .factor),
            (#"{"challenge":"\#(id)","factor":"webauthn","code":"1"}"#, .factor),
            (#"{"challenge":"\#(id)","factor":"totp"}"#, .code),
            (#"{"challenge":"\#(id)","factor":"totp","code":""}"#, .code),
            (#"{"challenge":"\#(id)","factor":"totp","code":123456}"#, .code),
            (
                #"{"challenge":"\#(id)","factor":"totp","code":"\#(String(repeating: "1", count: 257))"}"#,
                .code
            ),
            (#"{"challenge":"\#(id)","factor":"totp","send":true}"#, .send),
            (#"{"challenge":"\#(id)","factor":"email_otp","send":1}"#, .send),
        ])
    func malformed(_ body: String, _ fault: SecondFactorAnswer.Malformed) {
        #expect(throws: fault) { try parse(body).get() }
    }

    @Test("A continuation that was cut short is none")
    func cutContinuation() {
        let whole = SignInContinuation(
            id: Example.signIn, baseURL: Example.url, publishableKey: "pk",
            token: Example.secret("token"), factors: ["totp"], expiresAt: Example.moment().wall
        ).challenge(in: .ordinary).continuation
        #expect(SignInContinuation(whole, in: .ordinary) != nil)
        for length in 0..<whole.count {
            let cut = whole.withBytes {
                Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<length]), in: .ordinary)
            }
            #expect(SignInContinuation(cut, in: .ordinary) == nil)
        }
    }
}
