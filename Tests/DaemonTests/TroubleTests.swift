import Foundation
import Glibc
import Testing

@Suite("What is in trouble is kept, and what is dead is told", .timeLimit(.minutes(25)))
struct TroubleTests {
    @Test("B01: what a load balancer makes up costs no token, and the first good answer ends it")
    func loadBalancer() throws {
        let faults = [
            "status-500", "status-502", "status-503", "status-504", "html-200", "truncated-json",
            "empty-200",
        ]
        try expectTransient(faults)
    }

    @Test("B02: a 4xx that is not Canopy's ends no sign-in")
    func foreignRefusals() throws {
        try expectTransient(["status-400-html", "status-401-html", "status-403-html"])
    }

    /// Each fault befalls a profile of its own, for as long as it takes to be noticed.
    private func expectTransient(_ faults: [String]) throws {
        let stage = try Stage(
            lifetime: 30, sandbox: ["--identities", "\(faults.count)", "--no-throttle"])
        var tokens: [String] = []
        for (index, fault) in faults.enumerated() {
            let person = SandboxServer.Person.user(index + 1)
            try stage.logIn(fault, as: person)
            tokens.append(try stage.goodToken(fault).text("access_token"))
            try stage.server.plan(fault, #","count":0,"identity":"\#(person.email)""#)
        }
        let clients = try faults.map { fault in
            let client = try stage.daemon.connect()
            try client.send(Stage.request("POST", "/v1/profiles/\(fault)/refresh?timeout=60"))
            return client
        }
        for (fault, token) in zip(faults, tokens) {
            try eventually("\(fault) is noticed") { try stage.state(fault) == "degraded" }
            let profile = try stage.profile(fault)
            #expect(
                try ["server_error", "server_unreachable"].contains(
                    profile.object("last_error").text("code")), "\(fault)")
            #expect(try stage.goodToken(fault).text("access_token") == token, "\(fault)")
            #expect(try stage.desktop.storedSession(fault)?.number("generation") == 0, "\(fault)")
        }
        try stage.server.heal()
        for (fault, client) in zip(faults, clients) {
            // It waits for the repetition, or is told that there will be one.
            _ = try client.answer()
            try eventually(within: 30, "\(fault) is over") { try stage.generation(fault) >= 1 }
            #expect(try stage.state(fault) == "active", "\(fault)")
            #expect(try !stage.profile(fault).has("last_error"), "\(fault)")
        }
        try stage.server.expectNoIncident()
    }

    @Test("An outage whose cause goes back and forth is told once for each cause")
    func alternating() throws {
        let person = SandboxServer.Person.ada
        // Half of that is how long a successor waits that came after a repetition.
        let stage = try Stage(lifetime: 20)
        try stage.desktop.directory.write("[log]\nLevel=debug\n", "conf/canopyd/canopyd.conf")
        try stage.killAndRestart()
        try stage.logIn()
        func lines(_ text: String) -> Int {
            stage.daemon.words.components(separatedBy: text + ": ").count - 1
        }
        try stage.server.setActive(person, false)
        for turn in 1...3 {
            try stage.server.plan("status-429", #","retry_after":"1""#)
            try eventually("it is told to wait") { try stage.refresh().code == "throttled" }
            try eventually("it is refused") { try stage.refresh().code == "refused" }
            try eventually("it is told of, turn \(turn)") {
                lines("An exchange failed") + lines("An exchange failed again") >= 2 * turn
            }
        }
        #expect(lines("An exchange failed") == 2)
        try stage.server.setActive(person, true)
        try stage.expectRotation()
        #expect(lines("Exchanges work again") == 1)
        // The next outage is told anew.
        try stage.server.setActive(person, false)
        try eventually("it is refused again") {
            _ = try stage.refresh()
            return lines("An exchange failed") == 3
        }
    }

    @Test("B04: a name that does not resolve is told as such, and presents nothing")
    func unresolvable() throws {
        let stage = try Stage()
        try stage.logIn()
        let before = try moved(stage, to: "https://canopy.invalid", configuration: "")
        let refused = try stage.refresh()
        #expect(refused.status == 503)
        #expect(try refused.code == "server_unreachable")
        #expect(try refused.json.text("detail").contains("canopy.invalid"))
        #expect(try stage.canopyctl("refresh").exitCode == 6)
        try expectNothingPresented(stage, since: before)
    }

    @Test(
        "B05: a proxy that lets nobody through presents nothing",
        arguments: StubbornProxy.Manner.allCases)
    func proxy(_ manner: StubbornProxy.Manner) throws {
        let proxy = try StubbornProxy(manner)
        let stage = try Stage()
        try stage.logIn()
        let before = try moved(
            stage, to: "https://canopy.example",
            configuration: "[network]\nProxy=http://127.0.0.1:\(proxy.port)\n")
        let refused = try stage.refresh()
        #expect(refused.status == 503)
        #expect(try refused.code == "server_unreachable")
        #expect(!proxy.requests.isEmpty)
        #expect(proxy.requests.allSatisfy { $0.hasPrefix("CONNECT canopy.example:443 ") })
        if manner == .forbids {
            #expect(try refused.json.text("detail").contains("the proxy refused"))
        }
        try expectNothingPresented(stage, since: before)
    }

    /// Lets the stored session name another server, and starts canopyd anew with a configuration.
    private func moved(
        _ stage: Stage, to url: String, configuration: String
    ) throws -> StoredItem {
        try stage.killDaemon()
        var item = try #require(try StoredItem(in: stage.desktop))
        item.set("url", url)
        try item.store(in: stage.desktop)
        try stage.desktop.directory.write(configuration, "conf/canopyd/canopyd.conf")
        try stage.startDaemon()
        _ = try stage.goodToken()
        return item
    }

    /// The token is as it was, no attempt counts, and once the server is there the first request
    /// rotates, without a hold.
    private func expectNothingPresented(_ stage: Stage, since before: StoredItem) throws {
        var item = try #require(try StoredItem(in: stage.desktop))
        #expect(try item.holds(tokenOf: before))
        #expect(try stage.desktop.marks().isEmpty)
        #expect(try stage.server.refreshes() == 0)
        #expect(try stage.state() == "degraded")
        try stage.killDaemon()
        item.set("url", stage.server.url)
        try item.store(in: stage.desktop)
        try stage.startDaemon()
        #expect(try stage.refresh().json.number("generation") == 1)
        let rotated = try #require(try StoredItem(in: stage.desktop))
        #expect(!rotated.has("not_before"))
        try stage.server.expectNoIncident()
    }

    @Test("B07: what clients do wrong changes nothing that is stored")
    func clientMistakes() throws {
        let stage = try Stage()
        try stage.logIn()
        let item = try #require(try StoredItem(in: stage.desktop))
        let before = try stateDirectory(stage)
        for (method, target) in [
            ("GET", "/v1/token?profile=nobody"), ("GET", "/v1/token?profile=../default"),
            ("GET", "/v1/token?min_validity=99999"), ("GET", "/v1/token?min_validity=x"),
            ("GET", "/v1/token?timeout=-1"), ("POST", "/v1/token"), ("GET", "/v2/token"),
            ("POST", "/v1/profiles/nobody/refresh"), ("POST", "/v1/profiles/nobody/logout"),
            ("POST", "/v1/profiles/default/refresh?if_generation=7"),
            ("POST", "/v1/profiles/default/logout?local=2"), ("DELETE", "/v1/profiles/default"),
            ("DELETE", "/v1/profiles/default/sessions/none"), ("PUT", "/v1/profiles/default"),
        ] {
            let answer = try stage.ask(method, target)
            // One of them is asked of the server, and one says what is so already.
            #expect(answer.status >= 400 || target.hasSuffix("if_generation=7"), "\(target)")
        }
        for body in ["", "{", "[]", #"{"email":7}"#, #"{"email":"x","password":"y"}"#, "\u{0}"] {
            #expect(try stage.ask("POST", "/v1/profiles/default/login", body).status >= 400)
        }
        #expect(try stage.tryLogin(password: "wrong").status == 422)
        #expect(try stage.tryLogin(key: stage.server.webKey).status == 422)
        #expect(try stage.tryLogin(url: "http://elsewhere.example").status == 400)
        for header in ["Origin: https://evil.example", "Referer: https://evil.example/"] {
            let client = try stage.daemon.connect()
            try client.send(
                "POST /v1/profiles/default/logout HTTP/1.1\r\nHost: canopyd\r\n\(header)\r\n\r\n")
            #expect(try client.answer().status == 403)
        }
        for bytes in ["\u{0}\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", "POST /v1/profiles/default/logout"]
        {
            let client = try stage.daemon.connect()
            try client.send(bytes)
            client.closeSending()
        }
        #expect(try stateDirectory(stage) == before)
        let after = try #require(try StoredItem(in: stage.desktop))
        #expect(try after.holds(tokenOf: item) && after.text("sign_in") == item.text("sign_in"))
        #expect(try stage.generation() == 0)
        _ = try stage.goodToken()
    }

    /// What the state directory says, but for which file it says it in.
    private func stateDirectory(_ stage: Stage) throws -> [String] {
        try stage.desktop.stateFiles().map { path in
            let text = try String(contentsOfFile: path, encoding: .utf8)
            return text.replacing(/"file_[a-z_]+":[0-9]+,/, with: "")
        }
    }

    @Test("B10: a revocation is in status, event and exit code after one attempt")
    func revocation() throws {
        let stage = try Stage()
        try stage.logIn()
        let subscriber = try stage.daemon.connect()
        try subscriber.send(Stage.request("GET", "/v1/events"))
        _ = try subscriber.answer(hasBody: false)
        try stage.server.revokeSessions(of: .ada)
        #expect(try stage.refresh().status == 401)
        #expect(try stage.state() == "signin_required")
        let status = try stage.ask("GET", "/v1/status").json.objects("profiles")[0]
        #expect(try status.text("state") == "signin_required")
        #expect(try subscriber.events(until: "signin_required").contains("revoked_or_expired"))
        #expect(try stage.canopyctl("token").exitCode == 4)
        #expect(try stage.canopyctl("status").exitCode == 4)
        #expect(try stage.server.refreshes() == 1)
        try stage.logIn()
        #expect(try stage.state() == "active")
        #expect(try stage.refresh().json.number("generation") == 1)
    }

    @Test("B10: a new sign-in ends a back-off at once")
    func backOffCleared() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("status-429", #","retry_after":"600""#)
        #expect(try stage.refresh().code == "throttled")
        #expect(try stage.refresh().code == "throttled")
        try stage.logIn()
        #expect(try stage.state() == "active")
        #expect(try !stage.profile().has("last_error"))
        #expect(try stage.refresh().json.number("generation") == 1)
        #expect(try stage.server.refreshes() == 2)
    }

    @Test("B11: a refusal in other words keeps the token, tells the code, and is not repeated")
    func otherRefusals() throws {
        let statuses = [400, 403, 404, 409, 422]
        let stage = try Stage(
            sandbox: ["--identities", "\(statuses.count + 1)", "--no-throttle"])
        for (index, status) in statuses.enumerated() {
            let person = SandboxServer.Person.user(index + 1)
            try stage.logIn("s\(status)", as: person)
            try stage.server.plan(
                "echo-body", #","status":\#(status),"identity":"\#(person.email)""#)
            try expectRefused(stage, "s\(status)", person, "http.echo")
        }
        let person = SandboxServer.Person.user(statuses.count + 1)
        try stage.logIn("inactive", as: person)
        try stage.server.setActive(person, false)
        try expectRefused(stage, "inactive", person, "auth.identity_inactive")
        try stage.server.setActive(person, true)
        try stage.expectRotation("inactive")
        try stage.server.expectNoIncident()
    }

    /// A06, too: what the server refuses in its own words is never repeated by itself.
    private func expectRefused(
        _ stage: Stage, _ profile: String, _ person: SandboxServer.Person, _ code: String
    ) throws {
        let refused = try stage.refresh(profile)
        #expect(refused.status == 502)
        #expect(try refused.code == "refused")
        #expect(try refused.json.text("detail").contains(code))
        #expect(try refused.json.number("retry_after") > 800)
        #expect(try stage.state(profile) == "refused")
        _ = try stage.goodToken(profile)
        #expect(try stage.desktop.storedSession(profile)?.number("generation") == 0)
        #expect(try stage.server.family(of: person).number("requests_arrived") == 1)
    }

    @Test(
        "B12: told to wait, nobody asks the server, through 500 requests and restarts",
        arguments: ["120", "date:120"])
    func toldToWait(_ retryAfter: String) throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("status-429", #","count":0,"retry_after":"\#(retryAfter)""#)
        let start = ContinuousClock.now
        #expect(try stage.refresh().code == "throttled")
        for part in 1...5 {
            let client = try stage.daemon.connect()
            for request in 1...100 {
                try client.send(
                    request.isMultiple(of: 4)
                        ? Stage.request("POST", "/v1/profiles/default/refresh")
                        : Stage.request("GET", "/v1/token"))
                let answer = Stage.Answer(try client.answer())
                if answer.status != 200 {
                    #expect(try answer.code == "throttled")
                    #expect(try (1...132).contains(answer.json.number("retry_after")))
                }
            }
            // Whatever it has in hand after a restart, it finds the wait before it presents.
            if part < 5 { try stage.killAndRestart() }
        }
        let refreshes = try stage.server.refreshes()
        // On a machine that was too slow for all of this within the wait it shows nothing.
        try #require(ContinuousClock.now - start < .seconds(115))
        #expect(refreshes == 1)
        try stage.server.expectNoIncident()
    }

    @Test("A05: a token whose answer was lost is presented again within the grace, once")
    func lostAnswer() throws {
        let stage = try Stage()
        try stage.logIn()
        let first = try stage.server.families()[0].text("current")
        try stage.server.plan("answer-lost")
        #expect(try stage.refresh().json.number("generation") == 1)
        let family = try stage.server.families()[0]
        #expect(try family.number("harmless_retries") == 1)
        #expect(try family.objects("presented").map { try $0.text("id") } == [first, first])
        #expect(try stage.desktop.storedSession()?.number("generation") == 1)
        try stage.server.expectNoIncident()
    }

    @Test("A05: an answer that stays lost past the grace is told as rotation_lost")
    func lostForGood() throws {
        let stage = try Stage(sandbox: ["--grace", "1"])
        try stage.logIn()
        try stage.server.plan("answer-lost", #","count":2"#)
        let refused = try stage.ask("POST", "/v1/profiles/default/refresh?timeout=60")
        #expect(refused.status == 401)
        #expect(try refused.json.text("reason") == "rotation_lost")
        #expect(try stage.profile().text("reason") == "rotation_lost")
        try stage.killAndRestart()
        #expect(try stage.token().json.text("reason") == "rotation_lost")
        #expect(try stage.server.refreshes() == 3)
    }

    @Test("A06: whatever spoils the answer to a rotation, it is asked for again within the grace")
    func spoiltAnswers() throws {
        let faults = [
            "answer-lost", "status-500", "status-502", "status-503", "status-504", "status-408",
            "status-429", "truncated-json", "truncated-body", "empty-200", "html-200", "non-json",
            "huge-body",
        ]
        let stage = try Stage(sandbox: ["--identities", "\(faults.count)", "--no-throttle"])
        for (index, fault) in faults.enumerated() {
            let person = SandboxServer.Person.user(index + 1)
            try stage.logIn(fault, as: person)
            try stage.server.plan(fault, #","when":"after","identity":"\#(person.email)""#)
        }
        for fault in faults { _ = try stage.ask("POST", "/v1/profiles/\(fault)/refresh?timeout=0") }
        for (index, fault) in faults.enumerated() {
            try eventually("\(fault) is made up for") { try stage.generation(fault) == 1 }
            let family = try stage.server.family(of: .user(index + 1))
            #expect(try family.number("harmless_retries") == 1, "\(fault)")
            #expect(try family.number("generation") == 1, "\(fault)")
        }
        try stage.server.expectNoIncident()
    }

    @Test(
        "A successor that has come whole counts, whatever is wrong around it",
        arguments: ["unended-body", "open-body", "broken-text", "long-body"])
    func wholeSuccessor(_ fault: String) throws {
        // The token that was rotated is dead at once.
        let stage = try Stage(sandbox: ["--grace", "0"])
        try stage.logIn()
        try stage.server.plan(fault, #","count":0"#)
        #expect(try stage.refresh().json.number("generation") == 1)
        try stage.server.heal()
        try stage.expectRotation()
        #expect(try stage.server.refreshes() == 2)
        try stage.server.expectNoIncident()
    }
}
