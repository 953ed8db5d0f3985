import Foundation
import Testing

@Suite("Signing in, and out", .timeLimit(.minutes(25)))
struct SignInTests {
    @Test("Who signed in gets a token, by HTTP and on the command line")
    func token() throws {
        let stage = try Stage()
        let login = try stage.canopyctl(
            "login", "--url", stage.server.url, "--key", stage.server.nativeKey, "--email",
            SandboxServer.Person.ada.email, "--password-stdin",
            input: SandboxServer.Person.ada.password + "\n")
        #expect(login.exitCode == 0, "\(login.output)")
        let token = try stage.goodToken()
        #expect(try token.text("profile") == "default")
        #expect(try token.text("token_type") == "Bearer")
        #expect(try token.number("generation") == 0)
        #expect(try (890...900).contains(token.number("expires_in")))
        #expect(try token.object("identity").text("email") == SandboxServer.Person.ada.email)
        let printed = try stage.canopyctl("token")
        #expect(printed.exitCode == 0)
        #expect(try printed.output == token.text("access_token") + "\n")
        #expect(try stage.canopyctl("status").exitCode == 0)
    }

    @Test("Profiles stand side by side, each with its own identity")
    func sideBySide() throws {
        let stage = try Stage()
        try stage.logIn("one", as: .ada)
        try stage.logIn("two", as: .grace)
        try stage.logIn("three", as: .ada)
        for (profile, person) in [
            ("one", SandboxServer.Person.ada), ("two", .grace), ("three", .ada),
        ] {
            #expect(
                try stage.goodToken(profile).object("identity").text("email") == person.email)
        }
        #expect(try stage.refresh("two").status == 200)
        #expect(try stage.generation("one") == 0)
        #expect(try stage.generation("two") == 1)
        #expect(try stage.ask("POST", "/v1/profiles/one/logout").status == 204)
        #expect(try stage.token("one").code == "unknown_profile")
        _ = try stage.goodToken("two")
        _ = try stage.goodToken("three")
        try stage.server.expectNoIncident()
    }

    @Test("Signing in again under the same name replaces the session, and harms none")
    func again() throws {
        let stage = try Stage()
        try stage.logIn(as: .ada)
        try stage.logIn(as: .grace)
        let token = try stage.goodToken()
        #expect(try token.object("identity").text("email") == SandboxServer.Person.grace.email)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("Signing out ends the session on the server, and the name is free again")
    func logout() throws {
        let stage = try Stage()
        try stage.logIn()
        let answer = try stage.ask("POST", "/v1/profiles/default/logout")
        #expect(answer.status == 204)
        #expect(answer.isEmpty)
        #expect(try stage.server.families().allSatisfy { try !$0.truth("alive") })
        #expect(try stage.token().status == 404)
        #expect(try stage.token().code == "unknown_profile")
        #expect(try stage.canopyctl("token").exitCode == 8)
        #expect(try stage.desktop.storedSession() == nil)
        try stage.logIn()
        _ = try stage.goodToken()
    }

    @Test("Without the server a sign-out forgets nothing, and names the command that does")
    func logoutOffline() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.end()
        let refused = try stage.ask("POST", "/v1/profiles/default/logout")
        #expect(refused.status == 503)
        #expect(try refused.code == "server_unreachable")
        #expect(try refused.json.text("fix") == "canopyctl logout --local")
        _ = try stage.goodToken()
        #expect(try stage.desktop.storedSession() != nil)
        #expect(try stage.canopyctl("logout").exitCode == 6)
        #expect(try stage.canopyctl("logout", "--local").exitCode == 0)
        #expect(try stage.token().code == "unknown_profile")
        #expect(try stage.desktop.storedSession() == nil)
    }

    @Test("Signing out locally leaves the session alive on the server")
    func logoutLocal() throws {
        let stage = try Stage()
        try stage.logIn()
        #expect(try stage.ask("POST", "/v1/profiles/default/logout?local=1").status == 204)
        #expect(try stage.server.families().allSatisfy { try $0.truth("alive") })
        #expect(try stage.token().code == "unknown_profile")
    }

    @Test("The server says who one is, lists sessions, and ends one on request")
    func questions() throws {
        let stage = try Stage()
        try stage.logIn("mine")
        try stage.logIn("other")
        let identity = try stage.ask("GET", "/v1/profiles/mine/identity")
        #expect(try identity.json.text("email") == SandboxServer.Person.ada.email)
        let sessions = try stage.ask("GET", "/v1/profiles/mine/sessions").json.objects("sessions")
        #expect(sessions.count == 2)
        let families = try stage.server.families()
        let other = try #require(families.last).text("current")
        #expect(try sessions.contains { try $0.text("id") == other })
        let revoke = try stage.canopyctl("revoke", "--profile", "mine", other)
        #expect(revoke.exitCode == 0, "\(revoke.output)")
        #expect(try stage.server.families().map { try $0.truth("alive") } == [true, false])
        let whoami = try stage.canopyctl("whoami", "--profile", "mine")
        #expect(whoami.exitCode == 0)
        #expect(whoami.output.contains(SandboxServer.Person.ada.email))
    }
}
