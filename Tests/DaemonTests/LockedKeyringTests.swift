import CLinux
import Foundation
import Glibc
import Testing

/// Section D of the faults that users of such daemons met: locked, and nobody there to ask.
@Suite("A keyring that is locked, whoever keeps it", .timeLimit(.minutes(25)))
struct LockedKeyringTests {
    @Test("D01: A prompt that nobody would answer is never raised, and nothing waits for one")
    func promptNeeded() throws {
        // Locked before the first rotation is due.
        let stage = try Stage(lifetime: 8, keyring: .double())
        try stage.logIn()
        try stage.double.lock()
        try eventually("the token is over, and the lock is known") {
            try stage.token("default", "&timeout=0").status == 423
        }
        // Every way in which the keyring is wanted.
        let asked: [() throws -> Stage.Answer] = [
            { try stage.token() }, { try stage.refresh() }, { try stage.tryLogin() },
            { try stage.ask("POST", "/v1/profiles/default/logout") },
            { try stage.ask("GET", "/v1/profiles/default/identity") },
        ]
        for ask in asked {
            let answer = try ask()
            #expect(answer.status == 423)
            #expect(try answer.code == "keyring_locked")
            // gnome-keyring's command would start one beside this service.
            #expect(try answer.json.text("fix").hasPrefix("secret-tool search --unlock "))
        }
        // The quickest of some: the machine may be busy with something else for one.
        var quickest = Duration.seconds(60)
        for _ in 1...5 {
            let start = ContinuousClock.now
            #expect(try stage.token().status == 423)
            quickest = min(quickest, ContinuousClock.now - start)
        }
        #expect(quickest < .promised(.milliseconds(100)))
        #expect(try stage.state() == "keyring_locked")
        try stage.killAndRestart()
        let restarted = try stage.token()
        #expect(try restarted.code == "keyring_locked")
        #expect(try restarted.json.text("fix").hasPrefix("secret-tool search --unlock "))
        try stage.double.expectNobodyAsked()
        try stage.double.unlock()
        try eventually("tokens come again") { try stage.token().status == 200 }
        try stage.double.expectNobodyAsked()
        try stage.server.expectNoIncident()
    }

    @Test(
        "D03: A keyring that is restarted locked delays, and costs nothing",
        arguments: Keeper.allCases)
    func restartedLocked(_ keeper: Keeper) throws {
        let stage = try Stage(lifetime: 900, keyring: keeper.keyring)
        try stage.logIn()
        let token = try stage.goodToken().text("access_token")
        try keeper.restartLocked(stage)
        try eventually("the lock is known") { try stage.state() == "keyring_locked" }
        #expect(try stage.goodToken().text("access_token") == token)
        #expect(try stage.refresh().code == "keyring_locked")
        #expect(try stage.server.refreshes() == 0)
        let isNoticed = try isDone(within: .seconds(2)) {
            if try stage.state() == "active" { try keeper.restartLocked(stage) }
            try eventually("the lock is known") { try stage.state() == "keyring_locked" }
            let start = ContinuousClock.now
            try keeper.unlockSilently(stage)
            try eventually("the unlocking is noticed") { try stage.state() == "active" }
            return start
        }
        #expect(isNoticed)
        // What was asked for meanwhile was refused, and is not made up for.
        #expect(try stage.server.refreshes() == 0)
        #expect(try stage.goodToken().text("access_token") == token)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test(
        "D04: Locked at boot is not signed out, and its unlocking is noticed",
        arguments: Keeper.allCases)
    func lockedAtBoot(_ keeper: Keeper) throws {
        let stage = try Stage(lifetime: 900, keyring: keeper.keyring)
        try stage.logIn()
        try stage.killDaemon()
        try keeper.restartLocked(stage)
        try stage.startDaemon()
        let subscriber = try stage.daemon.connect()
        try subscriber.send(Stage.request("GET", "/v1/events"))
        _ = try subscriber.answer(hasBody: false)
        let refused = try stage.token()
        #expect(refused.status == 423)
        #expect(try refused.code == "keyring_locked")
        #expect(try stage.state() == "keyring_locked")
        #expect(try stage.profile().object("identity").text("email") == "ada@example.com")
        let isNoticed = try isDone(within: .seconds(1)) {
            if try stage.state() == "active" { try keeper.restartLocked(stage) }
            try eventually("the lock is known") { try stage.state() == "keyring_locked" }
            try keeper.unlockSilently(stage)
            let start = ContinuousClock.now
            try eventually("its end is noticed") {
                try stage.token("default", "&timeout=0").status == 200
                    && stage.state() == "active"
            }
            return start
        }
        #expect(isNoticed)
        #expect(try stage.server.refreshes() == 0)
        let told = try subscriber.events(until: #""state":"active""#)
        #expect(!told.contains("signin_required"))
    }

    @Test(
        "D05: Locked is told from absent, however the service shows what is locked",
        arguments: ["hashes", "never", "never unlocked", "always"])
    func lockedOrAbsent(_ hiding: String) throws {
        let stage = try Stage(
            keyring: .double(MockSecretService.Shape(members: ["hides_locked": hiding])))
        try stage.logIn()
        let item = try #require(try stage.double.items().first)
        try stage.double.leave()
        try stage.double.come(locked: true)
        try eventually("it is locked") { try stage.state() == "keyring_locked" }
        try stage.killAndRestart()
        #expect(try stage.token().code == "keyring_locked")
        try stage.double.unlock()
        try eventually("it is there") { try stage.token().status == 200 }
        // And a locked collection beside an open default one may hide it as well.
        try stage.double.addCollection("work")
        try stage.double.move(to: "work")
        try stage.double.leave()
        try stage.double.come(locked: true)
        try stage.double.unlock()
        try eventually("its own collection is locked") { try stage.state() == "keyring_locked" }
        try stage.killAndRestart()
        #expect(try stage.token().code == "keyring_locked")
        try stage.double.unlock("work", silently: true)
        try eventually("it is there") { try stage.token("default", "&timeout=0").status == 200 }
        #expect(try stage.double.items().map(\.secret) == [item.secret])
        // Absent is what no collection holds, with all of them open.
        try stage.double.tell("remove", ["collection": "work"])
        #expect(try stage.refresh().json.text("reason") == "keyring_reset")
        try stage.double.expectNobodyAsked()
    }

    @Test("An item outside the default collection is used where it is, whatever else is locked")
    func elsewhere() throws {
        let stage = try Stage(keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn()
        try stage.double.addCollection("work")
        try stage.double.move(to: "work")
        try stage.expectRotation()
        try stage.double.lock("login")
        try stage.expectRotation()
        #expect(try stage.state() == "active")
        let items = try stage.double.items()
        #expect(items.count == 1)
        #expect(items[0].path.contains("/collection/work/"))
        #expect(try JSONObject(items[0].secret).number("generation") == 2)
        // A blank password unlocks it unasked; any other means that it is locked.
        try stage.double.reshape(["unlock_needs_prompt": false])
        try stage.double.lock("work", silently: true)
        try stage.expectRotation()
        try stage.double.reshape(["unlock_needs_prompt": true])
        try stage.double.lock("work")
        try eventually("the lock is known") { try stage.state() == "keyring_locked" }
        #expect(try stage.refresh().code == "keyring_locked")
        try stage.double.unlock("work", silently: true)
        try eventually("the unlocking is noticed") { try stage.state() == "active" }
        try stage.double.expectNobodyAsked()
        try stage.server.expectNoIncident()
    }

    @Test("D07: A prompt that is dismissed elsewhere changes nothing")
    func dismissed() throws {
        let stage = try Stage(keyring: .double())
        try stage.logIn()
        try stage.double.lock()
        try eventually("the lock is known") { try stage.state() == "keyring_locked" }
        // Somebody else's prompt, which the user dismisses.
        try stage.double.reshape(["prompt": "dismissed"])
        #expect(try !stage.desktop.lookUp().wasGiven)
        #expect(try stage.state() == "keyring_locked")
        // One that the service made for us and that nobody shows, dismissed while we are there.
        try stage.double.tell("pace", ["seconds": 0.1])
        try stage.daemon.connect().send(Stage.request("POST", "/v1/profiles/default/refresh"))
        try eventually("a prompt is made for us") { try stage.double.calls().openPrompts > 0 }
        try stage.double.tell("dismiss")
        try stage.double.tell("pace", ["seconds": 0])
        #expect(try stage.token().status == 200)
        #expect(try stage.refresh().code == "keyring_locked")
        #expect(try stage.state() == "keyring_locked")
        #expect(!stage.daemon.words.contains("signal"))
        #expect(try stage.double.calls().prompted == 1, "only the other program's")
        try stage.double.unlock()
        try stage.expectRotation()
    }

    @Test("D08: A prompt of another program whose end comes at once unlocks for us as well")
    func completedAtOnce() throws {
        let stage = try Stage(keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn()
        try stage.double.lock()
        try eventually("the lock is known") { try stage.state() == "keyring_locked" }
        try stage.double.reshape(["prompt": "completed"])
        #expect(try stage.desktop.lookUp().wasGiven)
        #expect(try stage.double.calls().prompted == 1)
        try eventually("it is noticed") { try stage.state() == "active" }
        try stage.expectRotation()
        #expect(try stage.double.calls().prompted == 1)
    }

    @Test("A keyring that calls itself locked while it is usable is used")
    func callsItselfLocked() throws {
        let stage = try Stage(
            keyring: .double(
                MockSecretService.Shape(members: ["locked_property": true]),
                named: "gnome-keyring-d"))
        try stage.logIn()
        try stage.expectRotation()
        try stage.killAndRestart()
        _ = try stage.goodToken()
        // It says so each time that anything of it changes.
        try stage.double.lock()
        try eventually("the lock is known") { try stage.state() == "keyring_locked" }
        try stage.double.unlock()
        try eventually("the unlocking is noticed") { try stage.state() == "active" }
        #expect(try stage.ask("GET", "/v1/status").json.object("keyring").text("state") == "ok")
        try stage.double.expectNobodyAsked()
    }

    @Test("A wallet that closes behind each user is not looked at for ever")
    func restless() throws {
        let stage = try Stage(keyring: .double())
        try stage.logIn()
        try stage.double.reshape(["unlock_needs_prompt": false, "closes_behind": true])
        try stage.double.lock()
        try eventually("it is looked at again and again") {
            try stage.double.tell("state").number("clients") >= 6
        }
        // As many looks as are free take a second or two.
        usleep(3_000_000)
        _ = try stage.double.calls()
        usleep(3_000_000)
        let looks = try stage.double.calls().count("Unlock")
        #expect(looks < 5, "\(looks) looks in three seconds")
        _ = try stage.goodToken()
    }
}

/// Who keeps the secrets, where a test is for a real service and for the double.
enum Keeper: CaseIterable, CustomTestStringConvertible {
    case gnomeKeyring
    case double

    var testDescription: String {
        switch self {
        case .gnomeKeyring: "gnome-keyring"
        case .double: "the double"
        }
    }

    var keyring: PrivateDesktop.Keyring {
        switch self {
        case .gnomeKeyring: .gnomeKeyring
        case .double: .double(named: "gnome-keyring-d")
        }
    }

    /// As an upgrade does it.
    func restartLocked(_ stage: Stage) throws {
        switch self {
        case .gnomeKeyring:
            try stage.desktop.stopKeyring(by: SIGKILL)
            try stage.desktop.startKeyring(locked: true)
        case .double:
            try stage.double.leave(crash: true)
            try stage.double.come(locked: true)
        }
    }

    /// Without a signal to anybody, as PAM unlocks gnome-keyring.
    func unlockSilently(_ stage: Stage) throws {
        switch self {
        case .gnomeKeyring: try stage.desktop.unlock()
        case .double: try stage.double.unlock(silently: true)
        }
    }
}
