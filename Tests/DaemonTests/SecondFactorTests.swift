import Foundation
import Testing

@Suite("Signing in with a second factor", .timeLimit(.minutes(25)))
struct SecondFactorTests {
    // What the sandbox prints of the identity that needs one.
    private static let totp = "135790"
    private static let emailCode = "24681357"
    private static let recoveryCode = "ABCD-EFGH-IJKL-MNOP"

    /// The challenge of a sign-in that passed the password.
    private func begin(_ stage: Stage, _ profile: String = "default") throws -> String {
        let answer = try stage.tryLogin(profile, as: .hedy)
        try #require(answer.status == 202, "\(answer.head)")
        return try answer.json.object("mfa").text("challenge")
    }

    private func prove(
        _ stage: Stage, _ challenge: String, _ factor: String, _ code: String,
        profile: String = "default"
    ) throws -> Stage.Answer {
        try stage.ask(
            "POST", "/v1/profiles/\(profile)/mfa",
            #"{"challenge":"\#(challenge)","factor":"\#(factor)","code":"\#(code)"}"#)
    }

    private func sendEmail(_ stage: Stage, _ challenge: String) throws -> Stage.Answer {
        try stage.ask(
            "POST", "/v1/profiles/default/mfa",
            #"{"challenge":"\#(challenge)","factor":"email_otp","send":true}"#)
    }

    @Test("A password is answered with what else is wanted, and the code with the session")
    func totp() throws {
        let stage = try Stage()
        let login = try stage.tryLogin(as: .hedy)
        #expect(login.status == 202)
        let mfa = try login.json.object("mfa")
        #expect(try mfa.strings("factors") == ["totp", "email_otp"])
        #expect(try mfa.text("expires_at").hasSuffix("Z"))
        #expect(try stage.token().code == "unknown_profile")
        #expect(try stage.ask("GET", "/v1/profiles").json.objects("profiles").isEmpty)

        let challenge = try mfa.text("challenge")
        let wrong = try prove(stage, challenge, "totp", "000000")
        #expect(try wrong.status == 422 && wrong.code == "credentials_rejected")
        #expect(try stage.token().code == "unknown_profile")
        let right = try prove(stage, challenge, "totp", Self.totp)
        #expect(right.status == 200)
        #expect(try right.json.object("identity").text("email") == "hedy@example.com")
        _ = try stage.goodToken()
        try stage.expectRotation()

        let again = try prove(stage, challenge, "totp", Self.totp)
        #expect(try again.status == 400 && again.code == "bad_request")
        #expect(try again.json.text("fix") == "canopyctl login")
        try stage.server.expectNoIncident()
    }

    @Test("A recovery code counts in any spelling, and once")
    func recoveryCode() throws {
        let stage = try Stage()
        let spelled = Self.recoveryCode.lowercased().replacing("-", with: "")
        #expect(try prove(stage, begin(stage), "recovery_code", spelled).status == 200)
        let reused = try prove(stage, begin(stage), "recovery_code", Self.recoveryCode)
        #expect(try reused.status == 422 && reused.code == "credentials_rejected")
        _ = try stage.goodToken()
    }

    @Test("A code comes by email on request, and not too often")
    func email() throws {
        let stage = try Stage()
        let challenge = try begin(stage)
        #expect(try prove(stage, challenge, "email_otp", Self.emailCode).status == 422)
        let sent = try sendEmail(stage, challenge)
        #expect(sent.status == 202)
        #expect(try sent.json.object("mfa").text("challenge") == challenge)
        let again = try sendEmail(stage, challenge)
        #expect(try again.status == 429 && again.code == "throttled")
        #expect(again.head.contains("\r\nRetry-After: "))
        #expect(try prove(stage, challenge, "email_otp", Self.emailCode).status == 200)
        _ = try stage.goodToken()
    }

    @Test("Wrong codes lock the challenge, and a new sign-in opens another")
    func lockOut() throws {
        let stage = try Stage()
        let challenge = try begin(stage)
        for _ in 0..<5 {
            #expect(try prove(stage, challenge, "totp", "000000").status == 422)
        }
        #expect(try prove(stage, challenge, "totp", Self.totp).status == 422)
        #expect(try prove(stage, begin(stage), "totp", Self.totp).status == 200)
    }

    @Test("A challenge that has expired on the server is refused in its words")
    func expired() throws {
        let stage = try Stage()
        let challenge = try begin(stage)
        try stage.server.advance(seconds: 301)
        let late = try prove(stage, challenge, "totp", Self.totp)
        #expect(try late.status == 422 && late.code == "credentials_rejected")
        #expect(try late.json.text("fix") == "canopyctl login")
    }

    @Test("Several sign-ins may wait, each for its own code")
    func several() throws {
        let stage = try Stage()
        let first = try begin(stage)
        let second = try begin(stage)
        let elsewhere = try begin(stage, "other")
        #expect(Set([first, second, elsewhere]).count == 3)
        #expect(try prove(stage, first, "totp", Self.totp, profile: "other").status == 400)
        #expect(try prove(stage, first, "totp", Self.totp).status == 200)
        #expect(try prove(stage, second, "totp", Self.totp).status == 400)
        #expect(try prove(stage, elsewhere, "totp", Self.totp, profile: "other").status == 200)
        _ = try stage.goodToken("other")
    }

    @Test("A session is served while another sign-in waits for its code, and then replaced")
    func replacing() throws {
        let stage = try Stage()
        try stage.logIn(as: .ada)
        let challenge = try begin(stage)
        #expect(
            try stage.goodToken().object("identity").text("email")
                == SandboxServer.Person.ada.email)
        #expect(try stage.state() == "active")
        #expect(try prove(stage, challenge, "totp", Self.totp).status == 200)
        #expect(
            try stage.goodToken().object("identity").text("email")
                == SandboxServer.Person.hedy.email)
        try stage.server.expectNoIncident()
    }

    @Test("On the command line the code is the second line of standard input")
    func commandLine() throws {
        let stage = try Stage()
        for code in [Self.totp, Self.recoveryCode] {
            let login = try stage.canopyctl(
                "login", "--url", stage.server.url, "--key", stage.server.nativeKey, "--email",
                SandboxServer.Person.hedy.email, "--password-stdin", "--code-stdin",
                input: SandboxServer.Person.hedy.password + "\n\(code)\n")
            #expect(login.exitCode == 0, "\(login.output)")
        }
        _ = try stage.goodToken()
        let wrong = try stage.canopyctl(
            "login", "--url", stage.server.url, "--key", stage.server.nativeKey, "--email",
            SandboxServer.Person.hedy.email, "--password-stdin", "--code-stdin",
            input: SandboxServer.Person.hedy.password + "\n000000\n")
        #expect(wrong.exitCode == 4)
        _ = try stage.goodToken()
    }
}
