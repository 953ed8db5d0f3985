import Foundation
import Glibc
import Testing

@Suite("Rotation", .timeLimit(.minutes(25)))
struct RotationTests {
    @Test("A token is renewed ahead of its expiry, with nobody asking, again and again")
    func ahead() throws {
        let stage = try Stage(lifetime: 3)
        try stage.logIn()
        let first = try stage.goodToken()
        try eventually("two rotations") { try stage.generation() >= 2 }
        let later = try stage.goodToken()
        #expect(try first.text("access_token") != later.text("access_token"))
        try stage.server.expectNoIncident()
    }

    @Test("B15: while the server hangs, a good token is handed out from memory, at once")
    func fromMemory() throws {
        let stage = try Stage()
        try stage.logIn()
        let before = try stage.goodToken().text("access_token")
        stage.server.freeze()
        defer { stage.server.thaw() }
        let start = ContinuousClock.now
        for _ in 0..<100 {
            #expect(try stage.goodToken().text("access_token") == before)
        }
        #expect(ContinuousClock.now - start < .promised(.seconds(2)))
    }

    @Test("A refresh on request rotates at once, and with an old generation not at all")
    func onRequest() throws {
        let stage = try Stage()
        try stage.logIn()
        let answer = try stage.refresh()
        #expect(try answer.json.number("generation") == 1)
        let late = try stage.ask("POST", "/v1/profiles/default/refresh?if_generation=0")
        #expect(late.status == 200)
        #expect(try late.json.number("generation") == 1)
        #expect(try stage.server.refreshes() == 1)
    }

    @Test(
        "What goes wrong between us and the server is made up for, and minded by nobody",
        arguments: [
            "answer-lost", "request-lost", "truncated-json", "truncated-body", "status-500",
            "status-502", "status-504", "html-200", "empty-200", "non-json", "status-302",
            "status-403-html", "status-401-html", "status-408",
        ])
    func fault(_ name: String) throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        try stage.server.plan(name)
        let answer = try stage.refresh()
        #expect(answer.status == 200)
        #expect(try answer.json.number("generation") == 1)
        try stage.server.expectNoIncident()
    }

    @Test("An answer that is lost after the rotation is asked for again with the same token")
    func lostAfterRotation() throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        try stage.server.plan("status-500", #","when":"after","count":2"#)
        #expect(try stage.refresh().json.number("generation") == 1)
        #expect(try stage.server.families()[0].number("harmless_retries") == 2)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("A server that says to wait is waited for, and callers are told how long")
    func throttled() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("status-429", #","retry_after":"2""#)
        let refused = try stage.refresh()
        #expect(refused.status == 429)
        #expect(try refused.code == "throttled")
        #expect(try (1...3).contains(refused.json.number("retry_after")))
        #expect(refused.head.lowercased().contains("retry-after: "))
        _ = try stage.goodToken()
        try eventually("the wait is over, and the rotation done") { try stage.generation() == 1 }
        #expect(try stage.server.refreshes() == 2)
        try stage.server.expectNoIncident()
    }

    @Test("B02: a verdict of the server's ends the session, says so, and is asked for once")
    func verdict() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.revokeSessions(of: .ada)
        let refused = try stage.refresh()
        #expect(refused.status == 401)
        #expect(try refused.code == "signin_required")
        #expect(try refused.json.text("reason") == "revoked_or_expired")
        #expect(try refused.json.text("fix") == "canopyctl login")
        #expect(try stage.profile().text("state") == "signin_required")
        #expect(try stage.profile().text("reason") == "revoked_or_expired")
        #expect(try stage.canopyctl("token").exitCode == 4)
        #expect(try stage.canopyctl("status").exitCode == 4)
        #expect(try stage.refresh().status == 401)
        #expect(try stage.server.refreshes() == 1)
        #expect(try stage.desktop.storedSession() == nil)
        try stage.killAndRestart()
        #expect(try stage.token().code == "signin_required")
        try stage.logIn()
        _ = try stage.goodToken()
    }
}
