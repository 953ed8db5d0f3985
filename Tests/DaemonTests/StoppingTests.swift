import CLinux
import Foundation
import Glibc
import Testing

@Suite("Stopping, and starting, whatever hangs", .timeLimit(.minutes(25)))
struct StoppingTests {
    @Test("D02: buses that accept and never answer delay neither the start nor SIGTERM")
    func silentBuses() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.killDaemon()
        let directory = stage.desktop.directory.path
        let silent = try ["silent-session", "silent-system"].map { name in
            let descriptor = try UnixSocket.make(SOCK_STREAM)
            try #require(UnixSocket.call(bind, descriptor, "\(directory)/\(name)") == 0)
            try #require(listen(descriptor, 16) == 0)
            return descriptor
        }
        defer { for descriptor in silent { close(descriptor) } }
        let clock = ContinuousClock()
        let start = clock.now
        let daemon = try RunningDaemon(
            in: stage.desktop.directory,
            environment: stage.desktop.environment.merging([
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(directory)/silent-session",
                "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(directory)/silent-system",
            ]) { $1 })
        // What waits for a bus waits 5 s at the least; the machine may be busy.
        #expect(clock.now - start < .promised(.seconds(4)))
        // One waits for what the keyring does not say, one to be signed in.
        let clients = [try daemon.connect(), try daemon.connect()]
        try clients[0].send(Stage.request("GET", "/v1/token?timeout=60"))
        try clients[1].send(
            Stage.request(
                "POST", "/v1/profiles/second/login",
                #"{"url":"\#(stage.server.url)","publishable_key":"k","email":"e","password":"p"}"#)
        )
        try eventually("the exchanges wait for the bus") {
            let path = "/proc/\(daemon.pid)/task/\(daemon.pid)/children"
            return try !String(contentsOfFile: path, encoding: .utf8).isEmpty
        }
        let stop = clock.now
        #expect(try daemon.end(by: SIGTERM) == 0)
        #expect(clock.now - stop < .promised(.seconds(2)))
    }

    @Test("A keyring that comes while a sign-in waits for logind starts no second exchange")
    func newsWhileStarting() throws {
        let desktop = try PrivateDesktop()
        let logind = try Logind(desktop)
        let stage = try Stage(on: desktop)
        try stage.logIn()
        try stage.killDaemon()
        try stage.desktop.stopKeyring()
        try stage.startDaemon()
        try eventually("nothing could be read") {
            try stage.state() == "keyring_unavailable"
        }
        try logind.freeze()
        let client = try stage.daemon.connect()
        try client.send(
            Stage.request("POST", "/v1/profiles/default/login", stage.credentials()))
        // What could not be read is to be read now, and the profile's turn is taken.
        try stage.desktop.startKeyring()
        try expectKeyring(stage, "ok")
        try logind.thaw()
        #expect(Stage.Answer(try client.answer()).status == 200)
        _ = try stage.goodToken()
        #expect(try stage.server.families().count == 2)
        try stage.server.expectNoIncident()
    }

    private func expectKeyring(_ stage: Stage, _ state: String) throws {
        try eventually("the keyring is known to be \(state)") {
            try stage.ask("GET", "/v1/status").json.object("keyring").text("state") == state
        }
    }
}
