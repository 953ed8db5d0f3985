import Foundation
import Testing

@Suite("What is refused says why, and loses nothing", .timeLimit(.minutes(25)))
struct RefusalTests {
    @Test("A web key is not native, and the words say so")
    func webKey() throws {
        let stage = try Stage()
        let refused = try stage.tryLogin(key: stage.server.webKey)
        #expect(refused.status == 422)
        #expect(try refused.code == "key_not_native")
        #expect(try refused.json.text("detail").contains("Native"))
        #expect(try refused.json.text("fix").hasPrefix("canopyctl login"))
        #expect(try stage.token().code == "unknown_profile")
        // The session that it made by mistake is not left open.
        #expect(try stage.server.families().allSatisfy { try !$0.truth("alive") })
    }

    @Test("A wrong password is refused in the server's words")
    func wrongPassword() throws {
        let stage = try Stage()
        let refused = try stage.tryLogin(password: "wrong")
        #expect(refused.status == 422)
        #expect(try refused.code == "credentials_rejected")
        #expect(try refused.json.text("detail").contains("Invalid e-mail or password"))
        #expect(try stage.token().code == "unknown_profile")
        let typed = try stage.canopyctl(
            "login", "--url", stage.server.url, "--key", stage.server.nativeKey, "--email",
            SandboxServer.Person.ada.email, "--password-stdin", input: "wrong\n")
        #expect(typed.exitCode == 4)
        #expect(typed.output.contains("Invalid e-mail or password"))
    }

    @Test("Too many sign-ins are throttled, with the time to wait")
    func throttled() throws {
        let stage = try Stage()
        for _ in 1...5 { #expect(try stage.tryLogin(password: "wrong").status == 422) }
        let refused = try stage.tryLogin()
        #expect(refused.status == 429)
        #expect(try refused.code == "throttled")
        #expect(try (600...1000).contains(refused.json.number("retry_after")))
        #expect(refused.head.lowercased().contains("retry-after: "))
    }

    @Test("A server that is not there is unreachable")
    func unreachable() throws {
        let stage = try Stage()
        try stage.server.end()
        let refused = try stage.tryLogin()
        #expect(refused.status == 503)
        #expect(try refused.code == "server_unreachable")
        #expect(try stage.token().code == "unknown_profile")
    }

    @Test("Without a bus one cannot sign in, and is told what to start")
    func noBus() throws {
        let stage = try Stage()
        let lonely = try RunningDaemon()
        let client = try lonely.connect()
        try client.send(
            Stage.request(
                "POST", "/v1/profiles/default/login",
                #"{"url":"\#(stage.server.url)","publishable_key":"\#(stage.server.nativeKey)","#
                    + #""email":"ada@example.com","password":"any"}"#))
        let refused = Stage.Answer(try client.answer())
        #expect(refused.status == 503)
        #expect(try refused.code == "keyring_unavailable")
        // No keyring can be started on a bus that is not there.
        #expect(try refused.json.text("fix") == "canopyctl doctor")
        #expect(try stage.server.families().isEmpty)
    }

    @Test(
        "A sign-in that makes no sense is a bad request",
        arguments: [
            "", "{", "[]", #"{"email":1}"#, #"{"email":"a@example.com"}"#,
            #"{"url":"http://192.0.2.1","publishable_key":"pk_x","email":"a","password":"b"}"#,
            #"{"url":"ftp://127.0.0.1","publishable_key":"pk_x","email":"a","password":"b"}"#,
            #"{"url":"http://127.0.0.1:1","email":"a","password":"b"}"#,
        ])
    func malformed(_ body: String) throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/login", body))
        let refused = Stage.Answer(try client.answer())
        #expect(refused.status == 400)
        #expect(try refused.code == "bad_request")
        #expect(try !refused.json.text("detail").isEmpty)
    }

    @Test("A session that the server does not know is refused in its words, and is no outage")
    func unknownSession() throws {
        let stage = try Stage()
        try stage.logIn()
        let refused = try stage.ask("DELETE", "/v1/profiles/default/sessions/none")
        #expect(try refused.code == "refused")
        #expect(try refused.json.text("detail").contains("No such session"))
        #expect(try refused.json.text("fix") == "canopyctl sessions")
        #expect(try stage.state() == "active")
        #expect(!stage.daemon.words.contains("warning"))
    }

    @Test("A profile that nobody signed in is unknown, to every request")
    func unknown() throws {
        let stage = try Stage()
        for (method, target) in [
            ("GET", "/v1/token?profile=nobody"), ("GET", "/v1/profiles/nobody"),
            ("POST", "/v1/profiles/nobody/refresh"), ("POST", "/v1/profiles/nobody/logout"),
            ("GET", "/v1/profiles/nobody/identity"), ("GET", "/v1/profiles/nobody/sessions"),
            ("DELETE", "/v1/profiles/nobody/sessions/1"), ("GET", "/v1/events?profile=nobody"),
        ] {
            let answer = try stage.ask(method, target)
            #expect(answer.status == 404, "\(method) \(target)")
            #expect(try answer.code == "unknown_profile", "\(method) \(target)")
        }
        #expect(try stage.canopyctl("token", "--profile", "nobody").exitCode == 8)
    }

    @Test("More validity than a token ever has is a bad request, and no endless rotation")
    func tooMuchValidity() throws {
        let stage = try Stage()
        try stage.logIn()
        let refused = try stage.token("default", "&min_validity=901")
        #expect(refused.status == 400)
        #expect(try refused.code == "bad_request")
        #expect(try stage.server.refreshes() == 0)
    }

    @Test("Nothing that is refused touches the session that is there")
    func nothingIsLost() throws {
        let stage = try Stage()
        try stage.logIn()
        let before = try stage.goodToken().text("access_token")
        #expect(try stage.tryLogin(key: stage.server.webKey).status == 422)
        #expect(try stage.tryLogin(password: "wrong").status == 422)
        #expect(try stage.tryLogin(url: "http://127.0.0.1:1").status == 503)
        #expect(try stage.ask("POST", "/v1/profiles/default/login", "{").status == 400)
        #expect(try stage.ask("DELETE", "/v1/token").status == 405)
        #expect(try stage.ask("GET", "/v1/token?profile=../x").status == 400)
        try stage.desktop.lock()
        #expect(try stage.tryLogin().status == 423)
        try stage.desktop.unlock()
        #expect(try stage.goodToken().text("access_token") == before)
        try eventually("the keyring is back") { try stage.refresh().status == 200 }
        #expect(try stage.generation() == 1)
        try stage.killAndRestart()
        #expect(try stage.goodToken().number("generation") == 1)
        try stage.server.expectNoIncident()
    }
}
