import CLinux
import Foundation
import Glibc
import Testing

/// Section D of the faults that users of such daemons met: there is no keyring, or it is odd.
@Suite("A keyring that hangs, is missing, or is odd", .timeLimit(.minutes(25)))
struct KeyringFaultTests {
    @Test("D02: A keyring that never answers stops neither start, nor watchdog, nor end")
    func silent() throws {
        let desktop = try PrivateDesktop(.double())
        try #require(desktop.double).spoil("*", .silence)
        try expectAlive(desktop)
    }

    @Test("D02: A message bus that never answers does not either")
    func silentBus() throws {
        let desktop = try PrivateDesktop(.nobody)
        try desktop.freezeBus()
        try expectAlive(desktop)
        try desktop.thawBus()
    }

    /// It is ready, pings its watchdog, answers, and ends, each within what is asked of it.
    private func expectAlive(
        _ desktop: PrivateDesktop, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let manager = try ServiceManager()
        let start = ContinuousClock.now
        let daemon = try RunningDaemon(
            in: desktop.directory,
            environment: desktop.environment.merging(["WATCHDOG_USEC": "400000"]) { $1 },
            manager: manager)
        #expect(
            ContinuousClock.now - start < .promised(.seconds(2)), sourceLocation: sourceLocation)
        var pings = 0
        while pings < 8 {
            let notice = try manager.notices.receive()
            if notice?.lines.contains("WATCHDOG=1") == true { pings += 1 }
            let client = try daemon.connect()
            try client.send(Stage.request("GET", "/v1/status"))
            #expect(try client.answer().status == 200, sourceLocation: sourceLocation)
        }
        let asking = try daemon.connect()
        try asking.send(Stage.request("GET", "/v1/token?profile=somebody&timeout=1"))
        let answer = Stage.Answer(try asking.answer())
        #expect([503, 504].contains(answer.status), sourceLocation: sourceLocation)
        let stop = ContinuousClock.now
        #expect(try daemon.end(by: SIGTERM) == 0, sourceLocation: sourceLocation)
        #expect(ContinuousClock.now - stop < .promised(.seconds(2)), sourceLocation: sourceLocation)
    }

    @Test("D02: Whichever call the keyring leaves unanswered, the token that is there serves")
    func silentCalls() throws {
        // Side by side, since each is waited for.
        let calls = ["GetAll", "ReadAlias", "Unlock", "SearchItems", "OpenSession", "GetSecrets"]
        let stages = try calls.map { call in
            let stage = try Stage(lifetime: 900, keyring: .double(named: "gnome-keyring-d"))
            try stage.logIn()
            try stage.double.spoil(call, .silence)
            _ = try stage.ask("POST", "/v1/profiles/default/refresh?timeout=0")
            return (call, stage)
        }
        for (call, stage) in stages {
            try eventually("\(call) is missed") { try stage.state() == "keyring_unavailable" }
            _ = try stage.goodToken()
            #expect(try stage.server.refreshes() == 0)
            try stage.double.heal()
            try stage.expectRotation()
            try stage.double.expectNobodyAsked()
            try stage.server.expectNoIncident()
        }
    }

    @Test("D09: Without a default alias there is no keyring for new sessions, and none is made")
    func noAlias() throws {
        let stage = try Stage(keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn()
        // The profile's item is found wherever it is; a new one has no place to be put.
        for collection in [nil, "gone"] {
            try stage.double.tell("alias", ["name": "default", "collection": collection])
            try stage.expectRotation()
            let refused = try stage.tryLogin("other", as: .grace)
            #expect(refused.status == 503)
            #expect(try refused.code == "keyring_unavailable")
            #expect(try refused.json.text("detail").contains("default collection"))
        }
        #expect(try stage.double.calls().count("ReadAlias") > 0)
        // No collection at all.
        try stage.double.tell("remove", ["collection": "login"])
        try eventually("it is missed") { try stage.refresh().status == 503 }
        #expect(try stage.refresh().code == "keyring_unavailable")
        #expect(try stage.server.families().count == 1, "a sign-in was sent in vain")
        try stage.double.addCollection("made", alias: "default")
        try eventually("what is gone is not taken for a fault") {
            try stage.state() == "signin_required"
        }
        try stage.logIn()
        try stage.expectRotation()
        try stage.double.expectNobodyAsked()
    }

    @Test("D11: Ten profiles at start are one connection, one session, and one call at a time")
    func manyAtStart() throws {
        let stage = try Stage(sandbox: ["--no-throttle"], keyring: .double())
        let names = (1...10).map { "profile-\($0)" }
        for name in names { try stage.logIn(name) }
        try stage.killDaemon()
        _ = try stage.double.calls()
        // Calls that do not wait for each other's answers are seen to overlap.
        try stage.double.tell("pace", ["seconds": 0.01])
        try stage.startDaemon()
        for name in names { _ = try stage.goodToken(name) }
        try expectOneSession(stage)
        // And when they all come back at once.
        try stage.double.leave()
        try eventually("it is gone") { try stage.state(names[0]) == "keyring_unavailable" }
        try stage.double.come(locked: true)
        try eventually("they wait") {
            try names.allSatisfy { try stage.state($0) == "keyring_locked" }
        }
        _ = try stage.double.calls()
        try stage.double.unlock()
        try eventually("they are back") { try names.allSatisfy { try stage.state($0) == "active" } }
        try expectOneSession(stage)
        #expect(try stage.server.refreshes() == 0)
    }

    private func expectOneSession(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let calls = try stage.double.calls()
        #expect(calls.sessionOwners.count == 1, sourceLocation: sourceLocation)
        #expect(calls.mostWaiting == 1, sourceLocation: sourceLocation)
    }

    @Test("D13: A display in the environment changes nothing, and no bus is started for it")
    func displayWithoutKeyring() throws {
        let desktop = try PrivateDesktop(.nobody)
        let started = desktop.directory.path + "/started"
        for name in ["dbus-launch", "dbus-daemon", "gcr-prompter", "xterm", "zenity"] {
            try desktop.directory.writeProgram(
                "#!/bin/sh\necho \"$0\" >>\(started)\nexit 1\n", "bin/" + name)
        }
        try desktop.stopBus()
        unlink(desktop.directory.path + "/bus")
        // As over SSH with X11 forwarding: a display, and no address of any bus.
        for display in [":99", nil] {
            var environment = desktop.environment.merging([
                "PATH": desktop.directory.path + "/bin:/usr/bin:/bin", "DISPLAY": display ?? "",
                "DBUS_SESSION_BUS_ADDRESS": "",
            ]) { $1 }
            if display == nil { environment["DISPLAY"] = nil }
            let daemon = try RunningDaemon(in: desktop.directory, environment: environment)
            let client = try daemon.connect()
            let start = ContinuousClock.now
            try client.send(Stage.request("GET", "/v1/token"))
            let answer = Stage.Answer(try client.answer())
            #expect(ContinuousClock.now - start < .promised(.seconds(2)))
            #expect(answer.status == 503)
            #expect(try answer.code == "keyring_unavailable")
            #expect(try daemon.end(by: SIGTERM) == 0)
        }
        #expect(!FileManager.default.fileExists(atPath: started), "something was started")
    }

    @Test("D14: Without a display, an unlocked keyring is all that is needed")
    func keyringWithoutDisplay() throws {
        let stage = try Stage()
        #expect(stage.desktop.environment["DISPLAY"] == nil)
        #expect(stage.desktop.environment["WAYLAND_DISPLAY"] == nil)
        try stage.logIn()
        try stage.expectRotation()
        try stage.killAndRestart()
        _ = try stage.goodToken()
        #expect(try stage.canopyctl("logout").exitCode == 0)
    }

    @Test(
        "D15: A keyring that the bus cannot start is unavailable at once, and used once it is there",
        arguments: ["/bin/false", "/bin/sleep 1000", nil])
    func activation(_ program: String?) throws {
        let stage = try Stage(keyring: .nobody)
        if let program {
            try stage.desktop.restartBus(startingKeyringWith: program)
            try stage.killAndRestart()
        }
        var refused = try stage.tryLogin()
        let isQuick = try isDone(within: .seconds(2)) {
            let start = ContinuousClock.now
            refused = try stage.tryLogin()
            return start
        }
        // The bus itself gives up a start after a second here.
        #expect(isQuick)
        #expect(refused.status == 503)
        #expect(try refused.code == "keyring_unavailable")
        #expect(
            try stage.ask("GET", "/v1/status").json.object("keyring").text("state")
                == "unavailable")
        try stage.desktop.startKeyring()
        try stage.logIn()
        let isNoticed = try isDone(within: .seconds(2)) {
            try stage.desktop.stopKeyring(by: SIGKILL)
            try eventually("the loss is noticed") { try stage.state() == "keyring_unavailable" }
            try stage.desktop.startKeyring()
            let start = ContinuousClock.now
            try eventually("its return is noticed") { try stage.state() == "active" }
            return start
        }
        #expect(isNoticed)
    }

    @Test("D16: Without a keyring no token is kept anywhere", arguments: ["nobody", "unwilling"])
    func nothingInPlainText(_ kind: String) throws {
        let stage = try Stage(keyring: kind == "nobody" ? .nobody : .double())
        if kind == "unwilling" {
            try stage.double.spoil("CreateItem", .error("org.freedesktop.DBus.Error.Failed"))
        }
        let refused = try stage.tryLogin()
        #expect(try refused.code == "keyring_unavailable")
        try stage.killAndRestart()
        #expect(try stage.token().status != 200)
        let families = try stage.server.families()
        if kind == "nobody" {
            #expect(families.isEmpty, "a password was spent on a session that cannot be kept")
        } else {
            #expect(try families.map { try $0.truth("alive") } == [false])
        }
        let marks = ["crt_", "eyJ", SandboxServer.Person.ada.password]
        var looked = 0
        for (name, bytes) in try stage.desktop.directory.files() {
            looked += 1
            for mark in marks {
                #expect(bytes.range(of: Data(mark.utf8)) == nil, "a secret is in \(name)")
            }
        }
        #expect(looked > 0)
        // With a keyring the refresh token looks as it was looked for.
        if kind != "nobody" {
            try stage.double.heal()
            try stage.logIn()
            #expect(try stage.double.items()[0].secret.contains(marks[0]))
            #expect(try stage.goodToken().text("access_token").hasPrefix(marks[1]))
        }
    }

    @Test("D20: The status says who keeps the secrets")
    func owner() throws {
        for (keyring, name) in [
            (PrivateDesktop.Keyring.gnomeKeyring, "gnome-keyring-daemon"),
            (.double(named: "kwalletd5"), "kwalletd5"),
            // What it was started with does not name it.
            (.double(named: "gnome-keyring-d"), "gnome-keyring-daemon"),
        ] {
            let stage = try Stage(keyring: keyring)
            try stage.logIn()
            let keyring = try stage.ask("GET", "/v1/status").json.object("keyring")
            #expect(try keyring.text("state") == "ok")
            #expect(try keyring.text("owner") == name)
        }
    }
}
