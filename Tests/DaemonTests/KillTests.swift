import Foundation
import Glibc
import Testing

@Suite("kill -9 loses nothing", .timeLimit(.minutes(25)))
struct KillTests {
    @Test("A restart serves the stored token at once, and rotates nothing")
    func restart() throws {
        let stage = try Stage()
        try stage.logIn()
        let before = try stage.goodToken().text("access_token")
        try stage.killAndRestart()
        #expect(try stage.goodToken().text("access_token") == before)
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        try stage.startDaemon()
        #expect(try stage.goodToken().text("access_token") == before)
        #expect(try stage.server.refreshes() == 0)
    }

    @Test("canopyd killed after the server rotated: its exchange stores, and the next one adopts")
    func canopydAlone() throws {
        let stage = try stageWithHeldAnswer()
        try stage.killDaemon()
        try stage.server.release()
        try stage.startDaemon()
        try eventually("the successor is adopted") { try stage.generation() == 1 }
        #expect(try stage.server.refreshes() == 1)
        try expectAlive(stage)
    }

    @Test("An exchange killed after the server rotated: the same token is sent again at once")
    func exchangeAlone() throws {
        let stage = try stageWithHeldAnswer()
        for exchange in try stage.exchanges() { kill(exchange, SIGKILL) }
        try eventually("the rotation is done") { try stage.generation() == 1 }
        #expect(try stage.server.families()[0].number("harmless_retries") == 1)
        try expectAlive(stage)
    }

    @Test("C06: both killed after the server rotated: the next canopyd sends the same token again")
    func both() throws {
        let stage = try stageWithHeldAnswer()
        let exchanges = try stage.exchanges()
        try stage.killDaemon()
        for exchange in exchanges { kill(exchange, SIGKILL) }
        try stage.startDaemon()
        try eventually("the rotation is done") { try stage.generation() == 1 }
        #expect(try stage.server.families()[0].number("harmless_retries") == 1)
        try expectAlive(stage)
    }

    @Test("The keyring killed after the server rotated: the successor is stored once it is back")
    func keyring() throws {
        let stage = try stageWithHeldAnswer()
        try stage.desktop.stopKeyring(by: SIGKILL)
        try stage.server.release()
        // The successor is held, and its access token serves, before anything could be stored.
        try eventually("the new token is handed out") {
            try stage.token().status == 200 && stage.generation() == 1
        }
        try stage.desktop.startKeyring()
        try eventually("the successor is in the keyring") {
            try stage.desktop.storedSession()?.number("generation") == 1
        }
        try eventually("the profile is well again") { try stage.state() == "active" }
        #expect(try stage.server.refreshes() == 1)
        try expectAlive(stage)
    }

    @Test("A18: killed at random moments, one or both, again and again: still signed in")
    func atRandom() throws {
        let seed = UInt64.random(in: 1...UInt64.max)
        var chance = SplitMix(state: seed)
        let stage = try Stage(lifetime: 4)
        try stage.logIn()
        for round in 1...8 {
            let note: Comment = "round \(round) of seed \(seed)"
            let before = try stage.generation()
            if Bool.random(using: &chance) {
                try stage.server.plan(
                    "slow", #","delay_ms":\#(Int.random(in: 1...40, using: &chance))"#)
            }
            try eventually(note) {
                let client = try stage.daemon.connect()
                try client.send(Stage.request("POST", "/v1/profiles/default/refresh"))
                return try !stage.exchanges().isEmpty || stage.generation() > before
            }
            usleep(UInt32.random(in: 0...60_000, using: &chance))
            let exchanges = try stage.exchanges()
            let victims = Int.random(in: 0...2, using: &chance)
            if victims != 1 { try stage.killDaemon() }
            if victims != 0 { for exchange in exchanges { kill(exchange, SIGKILL) } }
            if victims != 1 { try stage.startDaemon() }
            try eventually(note) { try stage.generation() > before }
            #expect(try stage.token().status == 200, note)
        }
        try stage.server.heal()
        try expectAlive(stage)
    }

    /// A rotation is under way: the server has rotated, and its answer has not come.
    private func stageWithHeldAnswer() throws -> Stage {
        // Longer than what a test machine under load needs to start canopyd again.
        let stage = try Stage(lifetime: 20, sandbox: ["--grace", "60"])
        try stage.logIn()
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh"))
        try eventually("the server holds its answer back") { try stage.server.held() == 1 }
        #expect(try stage.exchanges().count == 1)
        return stage
    }

    private func expectAlive(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        _ = try stage.goodToken(sourceLocation: sourceLocation)
        try stage.expectRotation(sourceLocation: sourceLocation)
        #expect(try stage.server.families()[0].truth("alive"), sourceLocation: sourceLocation)
        try stage.server.expectNoIncident(sourceLocation: sourceLocation)
    }
}

/// Steele, Lea and Flood's generator: a failure's seed repeats its walk.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
