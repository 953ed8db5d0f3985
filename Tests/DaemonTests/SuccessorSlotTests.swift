import AgentCore
import Foundation
import Glibc
import Testing

/// The keyring is locked right after the server rotated, so that the successor is in the slot alone.
@Suite("A successor that the keyring does not take", .timeLimit(.minutes(25)))
struct SuccessorSlotTests {
    @Test("Its exchange killed: canopyd has the slot, serves its token, and stores it at last")
    func exchangeKilled() throws {
        let stage = try stageWithSuccessor()
        for exchange in try stage.exchanges() { kill(exchange, SIGKILL) }
        try eventually("the new token is handed out, whatever the keyring says") {
            try stage.token().status == 200 && stage.generation() == 1
        }
        try stage.desktop.unlock()
        try expectStored(stage)
    }

    /// How the keyring is lost, and found again.
    enum Loss: CaseIterable {
        case locked
        case killed
        case withItsBus
        /// The bus accepts and answers nothing: each try takes its 5 s.
        case behindSilentBus
    }

    @Test(
        "canopyd killed: its exchange stores, however long it takes, and the next canopyd adopts",
        arguments: Loss.allCases)
    func canopydKilled(_ loss: Loss) throws {
        let stage = try stageWithSuccessor(loss)
        let exchange = try #require(try stage.exchanges().first)
        try stage.killDaemon()
        try stage.startDaemon()
        // Longer than the 5 s that it would try if somebody else had the slot.
        sleep(7)
        #expect(try isAlive(exchange))
        #expect(try stage.token("default", "&timeout=0").status != 200)
        #expect(try stage.server.refreshes() == 1)
        switch loss {
        case .locked:
            try stage.desktop.unlock()
        case .killed:
            try stage.desktop.startKeyring()
        case .withItsBus:
            try stage.desktop.startBus()
            try stage.desktop.startKeyring()
        case .behindSilentBus:
            try stage.desktop.thawBus()
        }
        try eventually("the exchange is done") { try !isAlive(exchange) }
        try expectStored(stage)
    }

    @Test("Both killed within the grace: the same token is sent again, and the session lives")
    func bothKilled() throws {
        let stage = try stageWithSuccessor()
        try killBoth(stage)
        try stage.startDaemon()
        try stage.desktop.unlock()
        try eventually("the rotation is done") { try stage.generation() == 1 }
        #expect(try stage.server.families()[0].number("harmless_retries") == 1)
        try expectAlive(stage)
    }

    @Test("Both killed, and the grace over: the loss is told as one, and ends no other session")
    func bothKilledForTooLong() throws {
        let stage = try stageWithSuccessor()
        try stage.logInElsewhere()
        try killBoth(stage)
        try stage.server.advance(seconds: 120)
        try stage.startDaemon()
        try stage.desktop.unlock()
        try eventually("the end is known") { try stage.state() == "signin_required" }
        #expect(try stage.profile().text("reason") == "rotation_lost")
        let state = try stage.server.state()
        #expect(try state.number("family_revocations") == 1)
        #expect(try state.number("identity_revocations") == 0)
        #expect(
            try state.objects("families").map { try $0.number("generations_arrived_backwards") }
                == [0, 0])
    }

    @Test("Both killed, and the service manager keeps the slot: the next canopyd serves and stores")
    func keptByManager() throws {
        let manager = try ServiceManager()
        let stage = try stageWithSuccessor(manager: manager)
        try eventually("the exchange leaves the slot to canopyd") {
            try stage.exchanges().isEmpty
        }
        #expect(try stage.generation() == 1)
        try stage.killDaemon()
        try stage.startDaemon()
        try eventually("the new token is handed out while the keyring is locked") {
            try stage.token().status == 200 && stage.generation() == 1
        }
        #expect(try stage.server.refreshes() == 1)
        try stage.desktop.unlock()
        try expectStored(stage)
    }

    @Test(
        "What the service manager does not keep is told once, and its exchange does not rely on it")
    func unkept() throws {
        let manager = try ServiceManager()
        let stage = try Stage(
            lifetime: 60, sandbox: ["--grace", "60", "--no-throttle"], manager: manager)
        try stage.logIn()
        try stage.killDaemon()
        // As systemd says it from 254 on: there is room for one, which it keeps already.
        try stage.startDaemon(with: ["FDSTORE": "1"])
        try stage.logIn("work", as: .grace)
        try stage.logIn("more", as: .grace)
        #expect(try manager.descriptors().map(\.name) == ["successor-default"])
        let told = stage.daemon.words.split(separator: "\n").filter {
            $0.contains("The service manager does not keep every successor slot")
        }
        #expect(told.count == 1 && told[0].contains("profile=work"))
        try rotate(on: stage, "work", losing: .locked)
        let exchange = try #require(try stage.exchanges().first)
        try stage.killDaemon()
        // Longer than the 5 s after which it would leave the successor to the manager.
        sleep(7)
        #expect(try isAlive(exchange))
        try stage.desktop.unlock()
        try eventually("the exchange is done") { try !isAlive(exchange) }
        #expect(try stage.desktop.storedSession("work")?.number("generation") == 1)
        // Room that a sign-out leaves is used.
        try stage.startDaemon(with: ["FDSTORE": "1"])
        #expect(try stage.ask("POST", "/v1/profiles/default/logout").status == 204)
        try eventually("the manager has let go") { try manager.descriptors().isEmpty }
        try stage.logIn("next", as: .grace)
        #expect(try manager.descriptors().map(\.name) == ["successor-next"])
    }

    @Test(
        "A slot that a later version has filled: an earlier one leaves it, and that one stores it")
    func newerFormat() throws {
        let manager = try ServiceManager()
        let stage = try stageWithSuccessor(manager: manager)
        try eventually("the exchange leaves the slot to canopyd") {
            try stage.exchanges().isEmpty
        }
        try end(stage)
        let slot = try manager.kept("successor-default")
        let ours = bytes(of: slot)
        let body = String(decoding: ours.dropFirst(SlotFormat.headerBytes), as: UTF8.self)
        let later = Array(body.replacing(#""version":1"#, with: #""version":9"#).utf8)
        let theirs = later.withUnsafeBytes { SlotFormat.header(for: $0) } + later
        try #require(theirs.count == ours.count && theirs != ours)
        try write(theirs, into: slot)
        try stage.startDaemon()
        try stage.desktop.unlock()
        try eventually("the slot was looked at") {
            let answer = try stage.refresh()
            return try answer.status == 503 && answer.code == "storage_failed"
        }
        for answer in [try stage.refresh(), try stage.tryLogin()] {
            #expect(answer.status == 503)
            #expect(try answer.code == "storage_failed")
            #expect(try answer.json.text("detail").contains("run that version again"))
        }
        #expect(try stage.server.refreshes() == 1)
        #expect(bytes(of: slot) == theirs)
        // The later version: it reads what it wrote.
        try stage.killDaemon()
        try write(ours, into: slot)
        try stage.startDaemon()
        try expectStored(stage)
    }

    @Test("What only another version can read in a slot hides no token, and can be given up")
    func givenUp() throws {
        let manager = try ServiceManager()
        let stage = try stageWithSuccessor(lifetime: 900, manager: manager)
        try eventually("the exchange leaves the slot to canopyd") {
            try stage.exchanges().isEmpty
        }
        try end(stage)
        let slot = try manager.kept("successor-default")
        let theirs = [0xFF] + bytes(of: slot).dropFirst()
        try write(theirs, into: slot)
        try stage.startDaemon()
        try stage.desktop.unlock()
        try eventually("the token of before is handed out") {
            try stage.token().status == 200 && stage.state() == "degraded"
        }
        #expect(try stage.generation() == 0)
        #expect(try stage.profile().object("last_error").text("code") == "storage_failed")
        // A home without its state: nobody knows what was signed in.
        try stage.killDaemon()
        try FileManager.default.removeItem(atPath: stage.desktop.directory.path + "/state")
        try stage.startDaemon()
        let kept = try stage.ask("POST", "/v1/profiles/default/logout")
        #expect(try kept.status == 503 && kept.code == "storage_failed")
        #expect(try kept.json.text("detail").contains("logout --local: that destroys it"))
        #expect(bytes(of: slot) == theirs)
        #expect(try stage.server.refreshes() == 1)
        #expect(try stage.ask("POST", "/v1/profiles/default/logout?local=1").status == 204)
        #expect(try stage.desktop.storedSession() == nil)
        try eventually("the slot is gone") { try manager.descriptors().isEmpty }
        try stage.logIn()
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    /// Kills canopyd and its exchange, of which the next try may be under way, and would store what it has
    /// read.
    private func end(_ stage: Stage) throws {
        kill(stage.daemon.pid, SIGSTOP)
        let exchanges = try stage.exchanges()
        try stage.killDaemon()
        for exchange in exchanges { kill(exchange, SIGKILL) }
    }

    private func bytes(of descriptor: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    private func write(_ bytes: [UInt8], into descriptor: Int32) throws {
        try #require(ftruncate(descriptor, 0) == 0)
        try #require(pwrite(descriptor, bytes, bytes.count, 0) == bytes.count)
    }

    @Test("canopyd stopped: the service manager is left with a full slot, and with no empty one")
    func leftToManager() throws {
        let manager = try ServiceManager()
        let stage = try stageWithSuccessor(manager: manager)
        try eventually("the exchange leaves the slot to canopyd") {
            try stage.exchanges().isEmpty
        }
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        #expect(try manager.descriptors().map(\.name) == ["successor-default"])
        try stage.startDaemon()
        #expect(try stage.token().status == 200 && stage.generation() == 1)
        try stage.desktop.unlock()
        try expectStored(stage)
        #expect(try manager.descriptors().map(\.name) == ["successor-default"])
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        #expect(try manager.descriptors().map(\.name) == [])
    }

    @Test("canopyd stopped at a shutdown: a last attempt to store is made all the same")
    func shutdown() throws {
        let desktop = try PrivateDesktop()
        let logind = try Logind(desktop)
        let stage = try stageWithSuccessor(on: desktop)
        try eventually("the exchange leaves the slot to canopyd") {
            try stage.exchanges().isEmpty
        }
        try logind.prepare(.shutdown, true)
        // By now it has heard of it: nothing is started that could be put off.
        try stage.desktop.unlock()
        sleep(3)
        #expect(try stage.desktop.storedSession()?.number("generation") == 0)
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        #expect(try stage.desktop.storedSession()?.number("generation") == 1)
        try stage.server.expectNoIncident()
    }

    @Test("A question to the server does not hold up the stop of a canopyd whose slot is full")
    func stopWhileAsking() throws {
        let stage = try stageWithSuccessor()
        try eventually("the exchange leaves the slot to canopyd") {
            try stage.exchanges().isEmpty
        }
        try stage.server.plan("hold", #","on":"me""#)
        let client = try stage.daemon.connect()
        try client.send(Stage.request("GET", "/v1/profiles/default/identity"))
        try eventually("the server holds its answer back") { try stage.server.held() == 1 }
        let clock = ContinuousClock()
        let stop = clock.now
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        // The server would be waited for for 30 s.
        #expect(clock.now - stop < .promised(.seconds(10)))
    }

    /// The server has rotated, the keyring is lost, and the successor is in the slot.
    private func stageWithSuccessor(
        _ loss: Loss = .locked, lifetime: Int = 60, manager: ServiceManager? = nil,
        on desktop: PrivateDesktop? = nil
    ) throws -> Stage {
        let stage = try Stage(
            lifetime: lifetime, sandbox: ["--grace", "60"], on: desktop, manager: manager)
        try stage.logIn()
        try rotate(on: stage, "default", losing: loss)
        return stage
    }

    private func rotate(on stage: Stage, _ profile: String, losing loss: Loss) throws {
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/\(profile)/refresh"))
        try eventually("the server holds its answer back") { try stage.server.held() == 1 }
        switch loss {
        case .locked:
            try stage.desktop.lock()
        case .killed:
            try stage.desktop.stopKeyring(by: SIGKILL)
        case .withItsBus:
            try stage.desktop.stopKeyring()
            try stage.desktop.stopBus()
        case .behindSilentBus:
            try stage.desktop.freezeBus()
        }
        try stage.server.release()
        switch loss {
        case .locked, .killed, .withItsBus:
            let expected = loss == .locked ? "keyring_locked" : "keyring_unavailable"
            try eventually("the keyring was tried") {
                try stage.state(profile) == "degraded"
                    && stage.profile(profile).object("last_error").text("code") == expected
            }
        case .behindSilentBus:
            // The first try is still under way.
            break
        }
    }

    private func killBoth(_ stage: Stage) throws {
        let exchanges = try stage.exchanges()
        #expect(!exchanges.isEmpty)
        try stage.killDaemon()
        for exchange in exchanges { kill(exchange, SIGKILL) }
    }

    /// A process that has ended and that nobody has waited for is not alive.
    private func isAlive(_ process: pid_t) throws -> Bool {
        guard
            let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        else { return false }
        return !status.contains("State:\tZ")
    }

    /// In the keyring, without another request.
    private func expectStored(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try eventually("the successor is in the keyring", sourceLocation: sourceLocation) {
            try stage.desktop.storedSession()?.number("generation") == 1
        }
        try eventually("it is the one in use", sourceLocation: sourceLocation) {
            try stage.state() == "active" && stage.generation() == 1
        }
        #expect(try stage.server.refreshes() == 1, sourceLocation: sourceLocation)
        try expectAlive(stage, sourceLocation: sourceLocation)
    }

    private func expectAlive(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        _ = try stage.goodToken(sourceLocation: sourceLocation)
        #expect(try stage.server.families()[0].truth("alive"), sourceLocation: sourceLocation)
        try stage.server.expectNoIncident(sourceLocation: sourceLocation)
    }
}
