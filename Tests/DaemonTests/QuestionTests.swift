import Foundation
import Testing

@Suite("Questions that the server answers for an access token", .timeLimit(.minutes(25)))
struct QuestionTests {
    @Test(
        "An access token that the server takes no more is renewed once, and the question asked again",
        arguments: ["identity", "sessions", "revoke"])
    func renewed(_ question: String) throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.logInElsewhere()
        let other = try #require(
            try stage.ask("GET", "/v1/profiles/default/sessions").json.objects("sessions")
                .map { try $0.text("id") }.last)
        // By the server's clock the token is over, and by ours, as its Date told, it is not.
        try stage.server.advance(by: 1000)
        let answer =
            switch question {
            case "revoke": try stage.ask("DELETE", "/v1/profiles/default/sessions/\(other)")
            default: try stage.ask("GET", "/v1/profiles/default/\(question)")
            }
        #expect(answer.status == (question == "revoke" ? 204 : 200))
        #expect(try stage.generation() == 1)
        #expect(try stage.server.refreshes() == 1)
        #expect(try stage.state() == "active")
        #expect(!stage.daemon.words.contains("error"))
        try stage.server.expectNoIncident()
    }

    @Test("Right after a rotation it is not renewed once more: the refusal is told in its words")
    func floor() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.expectRotation()
        try stage.server.advance(by: 1000)
        let answer = try stage.ask("GET", "/v1/profiles/default/identity")
        #expect(answer.status == 502)
        #expect(try answer.code == "refused")
        #expect(try answer.json.text("detail") == "Invalid or expired token (401)")
        #expect(try stage.server.refreshes() == 1)
        // And the token goes on being served, for it is good as far as anybody here knows.
        _ = try stage.goodToken()
        try stage.server.expectNoIncident()
    }

    @Test("Where a new token is refused as well, whoever asks again has none renewed")
    func renewedInVain() throws {
        let stage = try Stage(lifetime: 40)
        try stage.logIn()
        try stage.server.plan("echo-body", #","on":"me","status":401,"count":1000"#)
        for _ in 1...3 {
            let answer = try stage.ask("GET", "/v1/profiles/default/identity")
            #expect(answer.status == 502)
            #expect(try answer.code == "refused")
            // Longer than lies between two rotations at the least.
            usleep(4_500_000)
        }
        #expect(try stage.server.refreshes() == 1)
        // The next token may be another matter.
        try stage.server.heal()
        try stage.expectRotation()
        #expect(try stage.ask("GET", "/v1/profiles/default/identity").status == 200)
        try stage.server.expectNoIncident()
    }

    @Test("Where the session has ended, or cannot be renewed, that is the answer")
    func notRenewed() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.advance(by: 1000)
        try stage.server.plan("status-403-html", #","count":1000"#)
        let unreachable = try stage.ask("GET", "/v1/profiles/default/identity")
        #expect(unreachable.status == 503)
        #expect(try unreachable.code == "server_unreachable")
        try stage.server.heal()
        try stage.server.revokeSessions(of: .ada)
        var ended = unreachable
        // A second lies between two attempts.
        try eventually("the end is known") {
            ended = try stage.ask("GET", "/v1/profiles/default/sessions")
            return ended.status == 401
        }
        #expect(try ended.code == "signin_required")
        #expect(try ended.json.text("reason") == "rotation_lost")
    }
}
