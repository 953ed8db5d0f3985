import Foundation
import Glibc
import Testing

@Suite("Suspend and shutdown", .timeLimit(.minutes(25)))
struct SuspendTests {
    /// A refusal that is no reason to wait: what is then waited for was told otherwise.
    private static let denied = "org.freedesktop.DBus.Error.AccessDenied"

    @Test("A07: a delay inhibitor is held until the successor is stored, and then released")
    func held() throws {
        let (stage, logind) = try stage()
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try eventually("the request is in flight") { try stage.server.held() == 1 }
        try logind.prepare(.sleep, true)
        #expect(try logind.inhibitors().held == 1)
        // The keyring does not take the successor yet, so the machine may not sleep yet either.
        try stage.desktop.freezeKeyring()
        try stage.server.release()
        try eventually("the server has rotated") {
            try stage.server.families()[0].number("generation") == 1
        }
        #expect(try logind.inhibitors().held == 1)
        try stage.desktop.thawKeyring()
        #expect(try Stage.Answer(client.answer()).json.number("generation") == 1)
        #expect(try stage.desktop.storedSession()?.number("generation") == 1)
        try eventually("the machine may sleep") { try logind.inhibitors().held == 0 }
        // One for the sign-in.
        #expect(try logind.inhibitors().given == 2)
        try stage.server.expectNoIncident()
    }

    @Test(
        "A07: after the signal nothing is presented, and once it is over, at once",
        arguments: [Logind.Operation.sleep, .shutdown])
    func notStarted(_ operation: Logind.Operation) throws {
        let (stage, logind) = try stage()
        try logind.refuse(Self.denied)
        try logind.prepare(operation, true)
        try letHear(stage)
        try expectNothingPresented(stage)
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try logind.prepare(operation, false)
        #expect(try Stage.Answer(client.answer()).json.number("generation") == 1)
        try stage.server.expectNoIncident()
    }

    @Test("A07: an operation in progress is no time to start; any other refusal is no reason")
    func refusals() throws {
        let (stage, logind) = try stage(lifetime: 30)
        for error in [
            Self.denied, "org.freedesktop.DBus.Error.LimitsExceeded", "org.example.Unheard",
        ] {
            try logind.refuse(error)
            try stage.expectRotation()
        }
        try logind.refuse("org.freedesktop.login1.OperationInProgress")
        // Three seconds lie between two rotations.
        try eventually("a rotation is asked for, and does not begin") {
            try refusesToRotate(stage)
        }
        let before = try stage.server.refreshes()
        try expectNothingPresented(stage)
        try logind.refuse(nil)
        try logind.prepare(.shutdown, false)
        try eventually("the rotation is done") { try stage.server.refreshes() == before + 1 }
        try stage.server.expectNoIncident()
    }

    @Test("A07: what is under way when canopyd starts is asked for")
    func atStart() throws {
        let (stage, logind) = try stage()
        try logind.refuse(Self.denied)
        try stage.killDaemon()
        try logind.prepareUntold(.sleep, true)
        try stage.startDaemon()
        _ = try stage.goodToken()
        try eventually("what it loaded with has ended") { try stage.exchanges().isEmpty }
        try expectNothingPresented(stage)
        try logind.prepare(.sleep, false)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("A07: a logind that restarts is asked anew, and its silence holds nobody up")
    func restartedLogind() throws {
        let (stage, logind) = try stage()
        try logind.prepare(.sleep, true)
        try letHear(stage)
        try expectNothingPresented(stage)
        // Nobody will ever say that the sleep is over.
        try logind.stop()
        try stage.expectRotation()
        try logind.start(in: .shutdown, refusing: Self.denied)
        try eventually("canopyd knows of the shutdown") { try refusesToRotate(stage) }
        try expectNothingPresented(stage)
        try logind.prepare(.shutdown, false)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("A07: a system bus that went away is found again, and logind asked anew")
    func restartedBus() throws {
        let (stage, logind) = try stage()
        try logind.prepare(.sleep, true)
        try letHear(stage)
        try expectNothingPresented(stage)
        try logind.stop()
        try logind.stopBus()
        try stage.expectRotation()
        try logind.startBus()
        try logind.start(in: .sleep, refusing: Self.denied)
        try eventually("canopyd knows of the sleep") { try refusesToRotate(stage) }
        try expectNothingPresented(stage)
        try logind.refuse(nil)
        try logind.prepare(.sleep, false)
        try stage.expectRotation()
        #expect(try logind.inhibitors().given >= 1)
        try stage.server.expectNoIncident()
    }

    /// Signed in, with a logind.
    private func stage(lifetime: Int = 900) throws -> (Stage, Logind) {
        let desktop = try PrivateDesktop()
        let logind = try Logind(desktop)
        let stage = try Stage(lifetime: lifetime, on: desktop)
        try stage.logIn()
        return (stage, logind)
    }

    /// A signal that is there before a request is read before the request after the next: the
    /// loop serves all that is ready, in turn.
    private func letHear(_ stage: Stage) throws {
        for _ in 1...3 { _ = try stage.ask("GET", "/v1/status") }
    }

    /// A rotation is asked for, and has not begun after a second.
    private func refusesToRotate(_ stage: Stage) throws -> Bool {
        try stage.ask("POST", "/v1/profiles/default/refresh?timeout=1").status == 504
    }

    private func expectNothingPresented(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try stage.server.refreshes()
        #expect(try refusesToRotate(stage), sourceLocation: sourceLocation)
        #expect(try stage.server.refreshes() == before, sourceLocation: sourceLocation)
        #expect(try stage.exchanges().isEmpty, sourceLocation: sourceLocation)
        _ = try stage.goodToken(sourceLocation: sourceLocation)
    }
}
