import Foundation
import Glibc
import Testing

@Suite("Several at once, and late news", .timeLimit(.minutes(25)))
struct RaceTests {
    @Test("A01, B17: 200 callers and a second canopyd cause one request, and all get its token")
    func manyCallers() throws {
        // The new token's life counts from its request, which is held: some has to be left.
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        try stage.server.plan("hold")
        try eventually("the rotation is under way, and the server holds its answer") {
            try stage.server.held() == 1
        }
        try eventually(within: 60, "the first token is over") {
            try stage.token("default", "&timeout=0").status != 200
        }
        let clients = try (0..<200).map { _ in try stage.daemon.connect() }
        for client in clients { try client.send(Stage.request("GET", "/v1/token?timeout=30")) }
        // What one connection is told, all others have asked for before.
        #expect(try stage.ask("GET", "/v1/status").json.number("connections") >= 200)
        let second = try CanopydProgram.run(
            in: stage.desktop.directory, environment: stage.desktop.environment)
        #expect(second.exitCode == 1)
        #expect(second.words.contains("already running"))
        try stage.server.release()
        var tokens: Set<String> = []
        for client in clients {
            let answer = Stage.Answer(try client.answer())
            #expect(answer.status == 200)
            tokens.insert(try answer.json.text("access_token"))
        }
        #expect(tokens.count == 1)
        #expect(try stage.server.refreshes() == 1)
        try stage.server.expectNoIncident()
    }

    @Test("A02: two canopyds on one home refresh at once, 50 times: one presents, the other adopts")
    func twoDaemons() throws {
        // A twentieth of a second under half a second of floor: each round is a rotation.
        let stage = try Stage(lifetime: 5)
        try stage.logIn()
        try stage.server.plan("slow", #","delay_ms":50,"count":0"#)
        let elsewhere = try TestDirectory()
        let second = try RunningDaemon(
            in: elsewhere,
            environment: stage.desktop.environment.merging(["XDG_RUNTIME_DIR": elsewhere.path]) {
                $1
            })
        var last = 0
        for round in 1...50 {
            var newest = last
            try eventually(within: 30, "round \(round): both have a newer generation") {
                let clients = [try stage.daemon.connect(), try second.connect()]
                for client in clients {
                    try client.send(
                        Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
                }
                let answers = try clients.map { Stage.Answer(try $0.answer()) }
                try #require(answers.map(\.status) == [200, 200], "round \(round)")
                let generations = try answers.map { try $0.json.number("generation") }
                newest = try #require(generations.max())
                return try #require(generations.min()) > last
            }
            last = newest
        }
        // Whatever either of them has in hand was asked for once, by one of them.
        #expect(last >= 50)
        // One of them may rotate by itself between the two questions.
        try eventually("there is a generation for each request") {
            try stage.server.refreshes() == stage.server.families()[0].number("generation")
        }
        try stage.server.expectNoIncident()
    }

    @Test("A03: a verdict about a token that was replaced meanwhile ends nothing")
    func lateVerdict() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("late-401")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try eventually("the server is about to answer") { try stage.server.held() == 1 }
        // Somebody who has the same session rotates it, and stores what came.
        var item = try #require(try StoredItem(in: stage.desktop))
        let successor = try stage.server.rotate(item.text("refresh_token"))
        item.set("refresh_token", successor)
        item.set("generation", 1)
        try item.store(in: stage.desktop)
        try stage.server.release()
        #expect(try Stage.Answer(client.answer()).json.number("generation") == 1)
        #expect(try stage.state() == "active")
        #expect(try StoredItem(in: stage.desktop)?.holds(successor) == true)
        try stage.expectRotation()
        let family = try stage.server.families()[0]
        #expect(try family.number("generation") == 2)
        #expect(try family.truth("alive"))
    }

    @Test("A04: an answer after 25 s is stored, whatever ran out meanwhile, and nobody else asks")
    func slowAnswer() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("slow", #","delay_ms":25000"#)
        #expect(
            try stage.ask("POST", "/v1/profiles/default/refresh?timeout=1").code == "timeout")
        let elsewhere = try TestDirectory()
        let second = try RunningDaemon(
            in: elsewhere,
            environment: stage.desktop.environment.merging(["XDG_RUNTIME_DIR": elsewhere.path]) {
                $1
            })
        // It waits for the lock for 15 s and gives up, and comes again.
        let client = try second.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=120"))
        try eventually(within: 60, "the answer is stored") {
            try stage.desktop.storedSession()?.number("generation") == 1
        }
        #expect(try stage.server.refreshes() == 1)
        try eventually("canopyd has been told") { try stage.generation() == 1 }
        let adopted = Stage.Answer(try client.answer())
        #expect(adopted.status == 200)
        #expect(try adopted.json.number("generation") == 1)
        #expect(try stage.server.refreshes() == 1)
        let metrics = try second.connect()
        try metrics.send(Stage.request("GET", "/v1/metrics"))
        let counted = try metrics.answer().body
        #expect(counted.contains(#"outcome="adopted"} 1"#))
        #expect(!counted.contains(#"outcome="ok"}"#))
        #expect(try stage.ask("GET", "/v1/metrics").body.contains(#"outcome="ok"} 1"#))
        try stage.server.expectNoIncident()
    }

    @Test("B09: 1000 requests after a verdict cause not one more request to the server")
    func deadToken() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.revokeSessions(of: .ada)
        #expect(try stage.refresh().status == 401)
        let client = try stage.daemon.connect()
        for request in 1...1000 {
            try client.send(
                request.isMultiple(of: 2)
                    ? Stage.request("GET", "/v1/token")
                    : Stage.request("POST", "/v1/profiles/default/refresh"))
            #expect(try Stage.Answer(client.answer()).code == "signin_required")
        }
        #expect(try stage.server.refreshes() == 1)
        try stage.killAndRestart()
        for _ in 1...10 { #expect(try stage.token().code == "signin_required") }
        #expect(try stage.server.refreshes() == 1)
        try stage.logIn()
        _ = try stage.goodToken()
    }
}
