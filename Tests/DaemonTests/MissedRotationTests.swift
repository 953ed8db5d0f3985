import Foundation
import Glibc
import Testing

@Suite("Rotations that nobody was there to make", .timeLimit(.minutes(25)))
struct MissedRotationTests {
    private static let words = "Rotations were missed before canopyd started"

    @Test("H03: missed while canopyd was off, they are told at its start, once, and made up for")
    func off() throws {
        let lifetime = 3
        let stage = try Stage(lifetime: lifetime)
        try stage.logIn()
        try eventually("a rotation") { try stage.generation() >= 1 }
        // A rotation that is under way is finished first.
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        let before = try #require(try stage.desktop.storedSession()).number("generation")
        usleep(UInt32(2 * lifetime + 1) * 1_000_000)
        try stage.startDaemon()
        try eventually("it rotates again") { try stage.generation() > before }
        let lines = stage.daemon.words.split(separator: "\n").filter { $0.contains(Self.words) }
        #expect(lines.count == 1, "\(stage.daemon.words)")
        let line = try #require(lines.first)
        #expect(line.contains("profile=default") && line.contains("generation=\(before)"))
        let told = try #require(
            line.firstMatch(of: #/duration=([0-9]+)\.[0-9]{3}, missed=([0-9]+)/#))
        let (seconds, missed) = try (#require(Int(told.1)), #require(Int(told.2)))
        #expect(seconds > 2 * lifetime && missed == seconds / lifetime, "\(line)")
        try stage.server.expectNoIncident()
    }

    @Test("H03: a restart in time missed nothing, and says nothing")
    func restart() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.killAndRestart()
        _ = try stage.goodToken()
        try stage.expectRotation()
        #expect(!stage.daemon.words.contains(Self.words))
    }
}
