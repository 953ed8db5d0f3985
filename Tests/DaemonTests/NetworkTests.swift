import Foundation
import Glibc
import Testing

@Suite("Networks that go and come, and a machine that slept", .timeLimit(.minutes(25)))
struct NetworkTests {
    @Test("C01: while backing off, and only then, a change of the network starts an attempt")
    func changes() throws {
        let desktop = try PrivateDesktop()
        let network = try Namespaces(in: desktop.directory)
        let stage = try Stage(on: desktop, in: network)
        try stage.logIn()
        #expect(try !network.tells(stage.daemon.pid), "it listens though nothing waits")
        try network.run("ip link set lo down")
        let refused = try stage.ask("POST", "/v1/profiles/default/refresh?timeout=60")
        #expect(try refused.code == "server_unreachable")
        try eventually("it listens") { try network.tells(stage.daemon.pid) }
        for change in [
            "ip address add 10.9.9.1/32 dev lo", "ip route add blackhole 10.10.0.0/16",
        ] {
            let (due, last) = try longPause(stage)
            try network.run(change)
            try eventually("an attempt after \(change)") { try lastError(stage) > last }
            #expect(try lastError(stage) < due, "\(change) started nothing, only time did")
        }
        let (due, _) = try longPause(stage)
        try network.run("ip link set lo up")
        try eventually("the rotation") { try stage.generation() == 1 }
        #expect(try time(stage.profile(), "last_rotation_at") < due)
        try eventually("it no longer listens") { try !network.tells(stage.daemon.pid) }
    }

    /// Waits for a pause that is long enough to tell its end from what cuts it short; when it ends,
    /// and when the last attempt failed.
    private func longPause(_ stage: Stage) throws -> (due: Date, last: Date) {
        var due = Date.distantPast
        try eventually(within: 180, "a pause of several seconds") {
            let profile = try stage.profile()
            guard try profile.text("state") == "degraded" else { return false }
            due = try time(profile, "refresh_at")
            return due.timeIntervalSinceNow > 8
        }
        return (due, try lastError(stage))
    }

    private func lastError(_ stage: Stage) throws -> Date {
        try time(stage.profile().object("last_error"), "at")
    }

    private func time(_ object: JSONObject, _ key: String) throws -> Date {
        let text = try object.text(key)
        let formatter = ISO8601DateFormatter()
        if text.contains(".") { formatter.formatOptions.insert(.withFractionalSeconds) }
        return try #require(formatter.date(from: text), "\(text)")
    }

    @Test("C01, C02, C03: after eight hours of sleep no old token leaves, and a new one comes")
    func slept() throws {
        let desktop = try PrivateDesktop()
        let network = try Namespaces(in: desktop.directory)
        let stage = try Stage(on: desktop, in: network)
        try stage.logIn()
        let before = try stage.goodToken().text("access_token")
        try stage.killDaemon()
        // By the wall clock and by the clock that stands still in a sleep the token is good.
        let sleep = 8 * 3600
        let later = try Namespaces(in: desktop.directory, asleep: sleep)
        stage.wrapper = later.entrance()
        try stage.startDaemon()
        try eventually("the attempt to renew it has failed") { try stage.state() == "offline" }
        for parameters in ["", "&min_validity=0", "&timeout=0"] {
            let refused = try stage.token("default", parameters)
            #expect(refused.status == 503)
            #expect(try refused.code == "server_unreachable")
        }
        try stage.killDaemon()
        // The network is back, and the machine has been awake since.
        stage.wrapper = later.entrance(into: network)
        try stage.startDaemon()
        let after = try stage.goodToken()
        #expect(try after.text("access_token") != before)
        #expect(try after.number("generation") == 1)
        #expect(try (1...900).contains(after.number("expires_in")))
    }
}
