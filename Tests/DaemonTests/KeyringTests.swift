import Foundation
import Glibc
import Testing

@Suite(
    "The keyring goes, comes back, and is not always the one that it was", .timeLimit(.minutes(25)))
struct KeyringTests {
    @Test("A locked keyring is said to be locked, at once, and canopyd goes on once it is not")
    func locked() throws {
        // Locked before the first rotation is due.
        let stage = try Stage(lifetime: 8)
        try stage.logIn()
        try stage.desktop.lock()
        try eventually("the token is over, and the lock is known") {
            try stage.token("default", "&timeout=0").status == 423
        }
        // A hundredth of it is enough; the machine may be busy with something else for one.
        #expect(
            try isDone(within: .milliseconds(500)) {
                let start = ContinuousClock.now
                _ = try stage.token()
                return start
            })
        let refused = try stage.token()
        #expect(refused.status == 423)
        #expect(try refused.code == "keyring_locked")
        #expect(try refused.json.text("fix").contains("gnome-keyring-daemon"))
        #expect(try stage.state() == "keyring_locked")
        #expect(try stage.canopyctl("token").exitCode == 5)
        #expect(
            try stage.ask("GET", "/v1/status").json.object("keyring").text("state") == "locked")
        try stage.desktop.unlock()
        try eventually("tokens come again, with nobody doing anything") {
            try stage.token("default", "&timeout=0").status == 200
        }
        #expect(try stage.generation() >= 1)
        try stage.server.expectNoIncident()
    }

    @Test("Signing in with a locked keyring is refused, and works once it is unlocked")
    func lockedSignIn() throws {
        let stage = try Stage()
        try stage.desktop.lock()
        let refused = try stage.tryLogin()
        #expect(refused.status == 423)
        #expect(try refused.code == "keyring_locked")
        try stage.desktop.unlock()
        try stage.logIn()
        try stage.expectRotation()
    }

    @Test("A canopyd that starts with a locked keyring knows its profiles, and waits")
    func lockedStart() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.desktop.lock()
        try stage.killAndRestart()
        #expect(try stage.token().code == "keyring_locked")
        try stage.desktop.unlock()
        try eventually("the token comes") { try stage.token().status == 200 }
        #expect(try stage.server.refreshes() == 0)
    }

    @Test("A keyring that crashed is unavailable, and is used again when it is back")
    func crashed() throws {
        let stage = try Stage(lifetime: 2)
        try stage.logIn()
        try stage.desktop.stopKeyring(by: SIGKILL)
        try expectUnavailable(stage)
        try stage.desktop.startKeyring()
        try eventually("tokens come again") { try stage.token().status == 200 }
        try stage.server.expectNoIncident()
    }

    @Test("Without a session bus the keyring is unavailable, and canopyd finds the next bus")
    func bus() throws {
        let stage = try Stage(lifetime: 2)
        try stage.logIn()
        try stage.desktop.stopKeyring()
        try stage.desktop.stopBus()
        try expectUnavailable(stage)
        try stage.desktop.startBus()
        try stage.desktop.startKeyring()
        try eventually("tokens come again") { try stage.token().status == 200 }
        try stage.server.expectNoIncident()
    }

    private func expectUnavailable(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try eventually("the token is over, and the loss is known", sourceLocation: sourceLocation) {
            try stage.token("default", "&timeout=0").status == 503
        }
        let refused = try stage.token()
        #expect(refused.status == 503, sourceLocation: sourceLocation)
        #expect(try refused.code == "keyring_unavailable", sourceLocation: sourceLocation)
        #expect(try stage.state() == "keyring_unavailable", sourceLocation: sourceLocation)
        #expect(try stage.canopyctl("token").exitCode == 5, sourceLocation: sourceLocation)
    }

    @Test("A keyring without the item was reset: nothing is presented")
    func reset() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.desktop.clearKeyring()
        try expectSignInRequired(stage.refresh(), "keyring_reset")
        try stage.killAndRestart()
        try expectSignInRequired(stage.token(), "keyring_reset")
        #expect(try stage.server.refreshes() == 0)
        try stage.logIn()
        try stage.expectRotation()
    }

    @Test("A keyring from a backup is known for one, and its old token is never presented")
    func restoredKeyring() throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        try copy(stage.desktop.keyringDirectory, to: stage.desktop.directory.path + "/old")
        try stage.expectRotation()
        try stage.expectRotation()
        let presented = try stage.server.refreshes()
        try stage.killDaemon()
        try stage.desktop.stopKeyring()
        try copy(stage.desktop.keyringDirectory, to: stage.desktop.directory.path + "/new")
        try copy(stage.desktop.directory.path + "/old", to: stage.desktop.keyringDirectory)
        try stage.desktop.startKeyring()
        try stage.startDaemon()
        try expectSignInRequired(stage.token(), "restored_copy")
        try expectSignInRequired(stage.refresh(), "restored_copy")
        #expect(try stage.profile().text("reason") == "restored_copy")
        #expect(try stage.canopyctl("token").exitCode == 4)
        #expect(try stage.server.refreshes() == presented)

        // Nothing was lost by looking: with the right keyring it goes on.
        try stage.killDaemon()
        try stage.desktop.stopKeyring()
        try copy(stage.desktop.directory.path + "/new", to: stage.desktop.keyringDirectory)
        try stage.desktop.startKeyring()
        try stage.startDaemon()
        _ = try stage.goodToken()
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("A keyring restored under a running canopyd is known for one too")
    func restoredBehindOurBack() throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        try copy(stage.desktop.keyringDirectory, to: stage.desktop.directory.path + "/old")
        try stage.expectRotation()
        try stage.expectRotation()
        let presented = try stage.server.refreshes()
        try stage.desktop.stopKeyring()
        try copy(stage.desktop.directory.path + "/old", to: stage.desktop.keyringDirectory)
        try stage.desktop.startKeyring()
        try eventually("the copy is known for one") {
            try stage.refresh().code == "signin_required"
        }
        try expectSignInRequired(stage.token(), "restored_copy")
        #expect(try stage.server.refreshes() == presented)
        try stage.server.expectNoIncident()
    }

    @Test("A keyring whose state directory is gone is somebody else's copy")
    func stateDeleted() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.killDaemon()
        try FileManager.default.removeItem(atPath: stage.desktop.directory.path + "/state")
        try stage.startDaemon()
        try expectSignInRequired(stage.token(), "restored_copy")
        #expect(try stage.server.refreshes() == 0)
        // Whose session it is stands in the session itself.
        let profile = try stage.profile()
        #expect(try profile.text("url") == stage.server.url)
        #expect(
            try profile.object("identity").text("email") == SandboxServer.Person.ada.email)
        #expect(try profile.text("signed_in_at") > "2026")
    }

    @Test("A home that was restored as a whole is known by its anchor")
    func restoredHome() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.killDaemon()
        let state = stage.desktop.directory.path + "/state"
        try copy(state, to: stage.desktop.directory.path + "/old")
        try copy(stage.desktop.directory.path + "/old", to: state)
        try stage.startDaemon()
        try expectSignInRequired(stage.token(), "restored_copy")
        #expect(try stage.server.refreshes() == 0)
    }

    private func expectSignInRequired(
        _ answer: Stage.Answer, _ reason: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(answer.status == 401, sourceLocation: sourceLocation)
        #expect(try answer.code == "signin_required", sourceLocation: sourceLocation)
        #expect(try answer.json.text("reason") == reason, sourceLocation: sourceLocation)
        #expect(
            try answer.json.text("fix") == "canopyctl login", sourceLocation: sourceLocation)
    }

    private func copy(_ source: String, to target: String) throws {
        try? FileManager.default.removeItem(atPath: target)
        try FileManager.default.copyItem(atPath: source, toPath: target)
    }
}
