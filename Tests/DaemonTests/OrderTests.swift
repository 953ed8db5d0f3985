import Foundation
import Glibc
import Testing

@Suite(
    "The order of what is written, synced, sent and told", .timeLimit(.minutes(25)),
    .enabled(if: geteuid() == 0, "only root may see what a process like canopyd-exchange says"))
struct OrderTests {
    typealias Step = ExchangeTrace.Step

    /// The state directory: temporary file, fsync, rename, fsync of the directory.
    private static func recorded(pending: Bool = false) -> [Step] {
        [.writeState(pending: pending), .syncStateFile, .renameState, .syncStateDirectory]
    }

    /// The keyring: written, read back, and the directory's fsync that gnome-keyring leaves out.
    private static let stored: [Step] = [.setSecret, .getSecrets, .syncKeyringDirectory]

    private static let begun: [Step] = [.lock, .getSecrets] + recorded() + stored + [.presenting]

    @Test("A20: a rotation marks, stores, presents, fills the slot, stores, empties, and reports")
    func rotation() throws {
        let stage = try tracedStage()
        try stage.logIn()
        #expect(try stage.refresh().status == 200)
        #expect(
            try lastExchange(stage)
                == Self.begun + [.post("refresh"), .emptySlot, .fillSlot, .completeSlot]
                + Self.stored + [.emptySlot, .report, .exit])
    }

    @Test("A verdict looks again, is recorded, and only then told")
    func verdict() throws {
        let stage = try tracedStage()
        try stage.logIn()
        try stage.server.revokeSessions(of: .ada)
        #expect(try stage.refresh().status == 401)
        #expect(
            try lastExchange(stage)
                == Self.begun + [.post("refresh"), .getSecrets] + Self.recorded()
                + [.emptySlot, .delete, .syncKeyringDirectory, .report, .exit])
    }

    @Test("A sign-in is pending before it is sent, and current after it is stored")
    func signIn() throws {
        let stage = try tracedStage()
        try stage.logIn()
        try stage.logIn()
        #expect(
            try lastExchange(stage)
                == [.lock, .getSecrets] + Self.recorded(pending: true)
                + [.presenting, .post("login")] + Self.stored + [.emptySlot]
                + Self.recorded() + [.report, .exit])
    }

    @Test("A sign-out is told to the server, recorded, and only then forgotten")
    func signOut() throws {
        let stage = try tracedStage()
        try stage.logIn()
        #expect(try stage.ask("POST", "/v1/profiles/default/logout").status == 204)
        #expect(
            try lastExchange(stage)
                == [.lock, .getSecrets, .presenting, .post("logout")] + Self.recorded()
                + [.emptySlot, .delete, .syncKeyringDirectory, .report, .exit])
    }

    @Test("A18: no path presents a token before its mark and the item are safe")
    func nothingBeforeTheMark() throws {
        let stage = try tracedStage(lifetime: 4)
        try stage.logIn()
        try stage.expectRotation()
        // Lost answers, a wait that was asked for, a refusal, a page.
        for fault in ["answer-lost", "status-503", "echo-body", "html-200"] {
            try stage.server.plan(fault)
            try stage.expectRotation()
        }
        try stage.server.plan("status-429", #","retry_after":"1""#)
        try stage.expectRotation()
        // A kill of the exchange, of canopyd, and of both, while the answer is awaited.
        for victims in 1...3 {
            try stage.server.plan("hold")
            try eventually("the answer is awaited") {
                let client = try stage.daemon.connect()
                try client.send(
                    Stage.request("POST", "/v1/profiles/default/refresh?timeout=0"))
                return try stage.server.held() == 1
            }
            let exchanges = try stage.exchanges()
            if victims != 1 { try stage.killDaemon() }
            if victims != 2 { for exchange in exchanges { kill(exchange, SIGKILL) } }
            try stage.server.release()
            if victims != 1 { try stage.startDaemon() }
            try stage.expectRotation()
        }
        // With a token that is nearly over and a hold that is not, it is told to come again.
        try eventually("it is signed out") {
            try stage.ask("POST", "/v1/profiles/default/logout").status == 204
        }
        try stage.server.expectNoIncident()

        let presenting = try exchanges(stage).filter { $0.contains(.post("refresh")) }
        #expect(presenting.count > 10)
        for steps in presenting {
            let before = steps.prefix { $0 != .post("refresh") }
            #expect(
                before.suffix(Self.begun.count - 2) == Self.begun.dropFirst(2),
                "presented after \(before)")
        }
    }

    private func tracedStage(lifetime: Int = 900) throws -> Stage {
        let desktop = try PrivateDesktop()
        return try Stage(
            lifetime: lifetime, sandbox: ["--grace", "60"], on: desktop,
            under: ExchangeTrace.command(writing: trace(desktop)))
    }

    private func trace(_ desktop: PrivateDesktop) -> String { desktop.directory.path + "/trace" }

    private func exchanges(_ stage: Stage) throws -> [[Step]] {
        try ExchangeTrace.read(trace(stage.desktop)).map(\.steps)
    }

    /// The last exchange, once it is over.
    private func lastExchange(_ stage: Stage) throws -> [Step] {
        var steps: [Step] = []
        try eventually("the last exchange has ended") {
            steps = try exchanges(stage).last ?? []
            return steps.last == .exit
        }
        return steps
    }
}
