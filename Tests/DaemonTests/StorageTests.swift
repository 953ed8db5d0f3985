import CLinux
import Foundation
import Glibc
import Testing

/// Of section A of the faults that users of such daemons met, what is about keeping the next token.
@Suite("What the server gave is kept, whatever the keyring does", .timeLimit(.minutes(25)))
struct StorageTests {
    /// How storing fails.
    enum Failing: CaseIterable, CustomTestStringConvertible {
        case error, doneAndError, silence, lock, loss, dropped, altered

        var testDescription: String { "\(self)" }

        /// From now on nothing more can be stored, or is.
        func begin(_ double: MockSecretService) throws {
            let error = MockSecretService.Fault.error("org.freedesktop.DBus.Error.Failed")
            switch self {
            case .error: try double.spoil("SetSecret", error)
            case .doneAndError: try double.spoil("SetSecret", error, isDone: true)
            case .silence: try double.spoil("SetSecret", .silence)
            case .lock: try double.lock()
            case .loss: try double.leave()
            case .dropped: try double.reshape(["drops_writes": true])
            case .altered: try double.reshape(["alters_reads": true])
            }
        }

        func end(_ double: MockSecretService) throws {
            switch self {
            case .error, .doneAndError, .silence: try double.heal()
            case .lock: try double.unlock(silently: true)
            case .loss: try double.come()
            case .dropped: try double.reshape(["drops_writes": false])
            case .altered: try double.reshape(["alters_reads": false])
            }
        }
    }

    @Test("A09, A10: Storing fails right after a rotation, and nothing is lost or presented")
    func unstored() throws {
        // Side by side, since each is tried for seconds.
        let stages = try Failing.allCases.map { failing in
            let stage = try Stage(
                lifetime: 120 * Sanitizer.slowness,
                sandbox: ["--grace", "\(60 * Sanitizer.slowness)"],
                keyring: .double(named: "gnome-keyring-d"))
            return (failing, stage, try failRightAfterRotation(failing, stage))
        }
        for (failing, stage, client) in stages {
            let note: Comment = "\(failing)"
            // The client gets the new token though its successor is not stored.
            let answer = Stage.Answer(try client.answer())
            #expect(answer.status == 200, note)
            #expect(try answer.json.number("generation") == 1, note)
            // What was stored after all is well as soon as somebody looks.
            #expect(try failing == .doneAndError || stage.state() == "degraded", note)
            for _ in 1...3 {
                #expect(try stage.goodToken().number("generation") == 1, note)
                // Until it is answered: of a wait that is given up the work goes on, once there is a keyring.
                _ = try stage.ask("POST", "/v1/profiles/default/refresh?timeout=60")
            }
            // What the keyring did store is rotated again when that is due.
            #expect(
                try failing == .doneAndError || stage.server.refreshes() == 1,
                "presented meanwhile: \(failing)")
            #expect(try failing == .doneAndError || stage.slotSize() != 0, note)
        }
        for (failing, stage, _) in stages {
            try failing.end(stage.double)
            try eventually(within: 90, "it is stored: \(failing)") {
                try stage.desktop.storedSession()?.number("generation") ?? 0 >= 1
                    && [0, nil].contains(stage.slotSize())
            }
            try eventually("it is well: \(failing)") { try stage.state() == "active" }
            #expect(try !stage.profile().has("last_error"))
            // In a run that takes minutes the next one becomes due.
            try eventually("no token was presented twice: \(failing)") {
                try stage.server.refreshes() == stage.generation()
            }
            try stage.expectRotation()
            try stage.double.expectNobodyAsked()
            try stage.server.expectNoIncident()
        }
    }

    /// Lets the keyring fail between the server's rotation and the store, until the status shows it;
    /// returns the client that waits for the new token.
    private func failRightAfterRotation(_ failing: Failing, _ stage: Stage) throws -> RawClient {
        try stage.logIn()
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try eventually("the server has rotated") { try stage.server.held() == 1 }
        try failing.begin(stage.double)
        try stage.server.release()
        let start = ContinuousClock.now
        try eventually("the status shows it") {
            try stage.profile().has("last_error") && stage.state() == "degraded"
        }
        // Within a second on a machine that has one to spare. A keyring that is silent would be known
        // to be after five.
        #expect(ContinuousClock.now - start < .promised(.seconds(3)))
        let code = try stage.profile().object("last_error").text("code")
        #expect(["keyring_unavailable", "keyring_locked"].contains(code))
        return client
    }

    @Test("A09: A keyring that cannot be written is found out before the token is spent")
    func unwritable() throws {
        let stage = try Stage(lifetime: 60, keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn()
        for failing in [Failing.error, .dropped, .altered] {
            try failing.begin(stage.double)
            #expect(try stage.refresh().code == "keyring_unavailable")
            #expect(try stage.server.refreshes() == 0)
            _ = try stage.goodToken()
            try failing.end(stage.double)
            try eventually("it is well again") { try stage.state() == "active" }
        }
        try stage.expectRotation()
    }

    @Test("A verdict is not believed before the keyring was read again", arguments: [true, false])
    func verdictUnread(_ holdsNewer: Bool) throws {
        let stage = try Stage(lifetime: 60, keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn()
        let session = try #require(try stage.double.items().first)
        try stage.server.plan("hold", #","when":"before""#)
        try stage.server.revokeSessions(of: .ada)
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try eventually("the server holds its answer back") { try stage.server.held() == 1 }
        // While the answer is on its way the keyring is locked, and is then started anew.
        try stage.double.lock()
        try stage.server.release()
        try eventually("the verdict waits") { try stage.state() == "keyring_locked" }
        try stage.double.leave()
        try eventually("the loss is known") { try stage.state() == "keyring_unavailable" }
        if holdsNewer {
            // What another machine's agent on the same keyring would have stored.
            let newer = session.secret.replacingOccurrences(
                of: #""generation":0"#, with: #""generation":1"#)
            try #require(newer != session.secret)
            try stage.double.put(newer)
        }
        try stage.double.come(locked: true)
        usleep(1_500_000)
        #expect(try stage.state() != "signin_required")
        try stage.double.unlock(silently: true)
        let answer = Stage.Answer(try client.answer())
        if holdsNewer {
            #expect(answer.status == 200)
            #expect(try stage.generation() == 1)
            #expect(try stage.double.items().count == 1)
        } else {
            #expect(answer.status == 401)
            #expect(try answer.json.text("reason") == "revoked_or_expired")
            #expect(try stage.double.items().isEmpty)
        }
        #expect(try stage.server.refreshes() == 1, "the dead token was sent again")
    }

    @Test(
        "A13: One damaged item or state file is one profile's trouble",
        arguments: Damage.allCases)
    func oneDamaged(_ damage: Damage) throws {
        let stage = try Stage(
            lifetime: 60, sandbox: ["--no-throttle"], keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn("broken")
        try stage.logIn("whole", as: .grace)
        try stage.killDaemon()
        try damage.inflict(on: "broken", stage)
        try stage.startDaemon()
        let refused = try stage.token("broken")
        #expect(refused.status >= 400)
        #expect(try refused.code == damage.code)
        try damage.expectFix(refused)
        // It is one item's trouble, and not the keyring's.
        let status = try stage.ask("GET", "/v1/status").json
        #expect(try status.object("keyring").text("state") == "ok")
        _ = try stage.goodToken("whole")
        try stage.expectRotation("whole")
        #expect(try stage.ask("GET", "/v1/profiles").json.objects("profiles").count == 2)
        // What is known of it is shown, and what is not is not made up.
        let shown = try stage.profile("broken")
        for key in ["url", "identity", "generation", "signed_in_at"] {
            #expect(shown.has(key) == (damage != .oddState), "\(key)")
        }
        #expect(try !stage.canopyctl("status").output.contains("1970"))
        // The damage is neither presented, nor written over.
        #expect(
            try stage.server.families().map { try $0.number("requests_arrived") } == [0, 1])
        #expect(try stage.double.items(of: "broken").count == 1)
        try damage.mend("broken", stage, refused)
        try stage.logIn("broken")
        try stage.expectRotation("broken")
        try stage.expectRotation("whole")
    }

    enum Damage: CaseIterable, CustomTestStringConvertible {
        case cutItem, emptyItem, oddItem, newerItem, oddState

        var testDescription: String { "\(self)" }

        var code: String {
            switch self {
            case .cutItem, .oddItem, .newerItem: "keyring_unavailable"
            // An item without a secret was never stored.
            case .emptyItem: "signin_required"
            case .oddState: "storage_failed"
            }
        }

        func inflict(on profile: String, _ stage: Stage) throws {
            let secret = try #require(try stage.double.items(of: profile).first).secret
            switch self {
            case .cutItem: try stage.double.put(String(secret.dropLast(40)), into: profile)
            case .emptyItem: try stage.double.put("", into: profile)
            case .oddItem: try stage.double.put("hunter2", into: profile)
            case .newerItem:
                let newer = secret.replacing(#/"version":\d+/#, with: #""version":99"#)
                try #require(newer != secret)
                try stage.double.put(newer, into: profile)
            case .oddState:
                try Data("{".utf8).write(to: URL(fileURLWithPath: statePath(profile, stage)))
            }
        }

        /// The command that is told is the one that mends it, and no other.
        func expectFix(_ refused: Stage.Answer) throws {
            switch self {
            case .cutItem, .oddItem:
                #expect(
                    try refused.json.text("fix")
                        == "canopyctl logout --local --profile broken && "
                        + "canopyctl login --profile broken")
            case .emptyItem:
                #expect(try refused.json.text("fix") == "canopyctl login --profile broken")
            case .newerItem, .oddState:
                #expect(!(try refused.json.has("fix")))
            }
        }

        /// What the answer tells the user to do.
        func mend(_ profile: String, _ stage: Stage, _ refused: Stage.Answer) throws {
            switch self {
            case .cutItem, .emptyItem, .oddItem, .newerItem:
                let logout = try stage.canopyctl("logout", "--local", "--profile", profile)
                #expect(logout.exitCode == 0)
            case .oddState:
                let path = try statePath(profile, stage)
                #expect(try refused.json.text("detail").contains(path))
                try FileManager.default.removeItem(atPath: path)
            }
        }

        private func statePath(_ profile: String, _ stage: Stage) throws -> String {
            let root = stage.desktop.directory.path + "/state"
            let names = try FileManager.default.subpathsOfDirectory(atPath: root)
            return root + "/" + (try #require(names.first { $0.hasSuffix("/\(profile).json") }))
        }
    }

    @Test("A14: After each rotation the keyring holds the token that the server gave last")
    func lastOne() throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        var seen: Set<String> = []
        for generation in 0...3 {
            if generation > 0 { try stage.expectRotation() }
            let stored = try #require(try stage.desktop.storedSession())
            let token = try stored.text("refresh_token")
            let family = try stage.server.families()[0]
            #expect(try stored.number("generation") == generation)
            #expect(try family.number("generation") == generation)
            #expect(try token.hasPrefix(family.text("current_prefix")))
            #expect(try token.hasSuffix(family.text("current")))
            #expect(seen.insert(token).inserted)
        }
        try stage.server.expectNoIncident()
    }

    @Test("A15: A rotation, then -9: the next canopyd rotates with the new token")
    func killedAfterRotation() throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        for _ in 1...3 {
            try stage.expectRotation()
            let generation = try stage.generation()
            try stage.killAndRestart()
            #expect(try stage.goodToken().number("generation") == generation)
            try stage.expectRotation()
        }
        #expect(try stage.generation() >= 6)
        try stage.server.expectNoIncident()
    }

    @Test("A16: A hundred rotations ask nobody for anything")
    func hundredRotations() throws {
        let names = (1...10).map { "user\($0)" }
        let stage = try Stage(
            lifetime: 2, sandbox: ["--no-throttle", "--identities", "10"],
            keyring: .double(named: "gnome-keyring-d"))
        for name in names {
            try stage.logIn(
                name,
                as: SandboxServer.Person(
                    email: "\(name)@example.com", password: "password of \(name)"))
        }
        try eventually(within: 60, "a hundred rotations, all by themselves") {
            try stage.server.refreshes() >= 100
        }
        try stage.double.expectNobodyAsked()
        try stage.server.expectNoIncident()
        #expect(try stage.server.families().allSatisfy { try $0.truth("alive") })
    }

    @Test("A20: What a client was given outlives the keyring and canopyd, ended that very moment")
    func durableFirst() throws {
        let stage = try Stage(lifetime: 20, sandbox: ["--grace", "60"])
        try stage.logIn()
        for generation in 1...3 {
            try eventually("a rotation") {
                try stage.refresh().json.number("generation") == generation
            }
            try stage.desktop.stopKeyring(by: SIGKILL)
            try stage.killDaemon()
            try stage.desktop.startKeyring()
            try stage.startDaemon()
            #expect(try stage.desktop.storedSession()?.number("generation") == generation)
            #expect(try stage.goodToken().number("generation") == generation)
        }
        #expect(try stage.server.refreshes() == 3, "something had to be asked for again")
        try stage.server.expectNoIncident()
    }

    @Test("A20: A keyring that writes late and dies costs nothing, and with canopyd a repetition")
    func writesLate() throws {
        let stage = try Stage(
            lifetime: 60, sandbox: ["--grace", "60"], keyring: .double(.kWallet))
        try stage.logIn()
        // Not yet on disk: whoever presents it now has nothing to go back to.
        #expect(try stage.refresh().json.number("generation") == 0)
        #expect(try stage.state() == "active")
        try eventually(within: 40, "it may be used") {
            try stage.refresh().json.number("generation") == 1
        }
        try stage.double.leave(crash: true)
        #expect(try stage.desktop.storedSession()?.number("generation") == 0)
        try stage.double.come()
        try eventually("the slot had it") {
            try stage.desktop.storedSession()?.number("generation") == 1
        }
        try eventually("all is well") { try stage.state() == "active" }
        #expect(try stage.server.refreshes() == 1)
        try stage.double.leave(crash: true)
        try stage.killDaemon()
        try stage.double.come()
        try stage.startDaemon()
        try eventually("the same token was sent again") {
            try stage.token().status == 200 && stage.generation() == 1
        }
        #expect(try stage.server.families()[0].number("harmless_retries") == 1)
        #expect(try stage.server.families()[0].truth("alive"))
        try stage.server.expectNoIncident()
    }

    @Test("A service that deletes more than it is asked to is not helped")
    func deletesMore() throws {
        let stage = try Stage(
            lifetime: 60, sandbox: ["--no-throttle"], keyring: .double(named: "gnome-keyring-d"))
        try stage.logIn("one")
        try stage.logIn("other", as: .grace)
        _ = try stage.double.calls()
        #expect(try stage.ask("POST", "/v1/profiles/one/logout").status == 204)
        #expect(try stage.double.calls().count("Delete") == 1)
        #expect(try stage.double.items(of: "other").count == 1)
        try stage.expectRotation("other")
        // With one that does, the other profile is told truly what became of it.
        try stage.logIn("one")
        try stage.double.reshape(["superset_delete": true])
        #expect(try stage.ask("POST", "/v1/profiles/one/logout").status == 204)
        _ = try stage.goodToken("other")
        try eventually("it is missed") { try stage.refresh("other").status == 401 }
        #expect(try stage.profile("other").text("reason") == "keyring_reset")
        #expect(try stage.server.families()[1].number("requests_arrived") == 1)
    }
}
