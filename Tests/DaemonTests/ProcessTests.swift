import CLinux
import Foundation
import Glibc
import Testing

@Suite("Exchanges that fail, and ends in the middle", .timeLimit(.minutes(25)))
struct ProcessTests {
    /// What may be in the place of canopyd-exchange.
    enum Impostor: String, CaseIterable {
        case nothing, notExecutable, notAProgram, failing
    }

    @Test(
        "B08: an exchange that cannot start, or dies, is told as such, and tried again till it works",
        arguments: Impostor.allCases)
    func exchangeFails(_ impostor: Impostor) throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.killDaemon()
        let directory = stage.desktop.directory
        let place = directory.path + "/bin"
        let exchange = place + "/canopyd-exchange"
        let real = URL(fileURLWithPath: try CanopydProgram.path).deletingLastPathComponent().path
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: real + "/canopyd", toPath: place + "/canopyd")
        try FileManager.default.createSymbolicLink(
            atPath: exchange, withDestinationPath: real + "/canopyd-exchange")
        stage.program = place + "/canopyd"
        try stage.startDaemon()
        let token = try stage.goodToken().text("access_token")
        try FileManager.default.removeItem(atPath: exchange)
        switch impostor {
        case .nothing: break
        case .notExecutable: try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: exchange))
        case .notAProgram: try directory.writeProgram("words", "bin/canopyd-exchange")
        case .failing:
            try directory.writeProgram("#!/bin/sh\nexit 7\n", "bin/canopyd-exchange")
        }
        let refused = try stage.ask("POST", "/v1/profiles/default/refresh?timeout=60")
        #expect(refused.status == 503)
        #expect(try refused.code == "storage_failed")
        let detail = try refused.json.text("detail")
        #expect(detail.contains(impostor == .failing ? "status 7" : "canopyd-exchange"))
        #expect(try stage.state() == "storage_failed")
        #expect(try stage.goodToken().text("access_token") == token)
        #expect(try stage.canopyctl("refresh").exitCode == 1)
        try? FileManager.default.removeItem(atPath: exchange)
        try FileManager.default.createSymbolicLink(
            atPath: exchange, withDestinationPath: real + "/canopyd-exchange")
        try eventually(within: 60, "it is tried again, with nobody asking") {
            try stage.generation() == 1
        }
        #expect(try stage.state() == "active")
        try stage.server.expectNoIncident()
    }

    @Test("B08: the watchdog is answered while canopyd's loop turns, whatever hangs beside it")
    func watchdog() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.killDaemon()
        let notices = try NoticeSocket(stage.desktop.directory.path + "/watchdog")
        let log = clinux_memfd_create("watchdog-log")
        defer { close(log) }
        let pid = try CanopydProgram.spawn(
            [], stage.desktop.directory,
            stage.desktop.environment.merging([
                "NOTIFY_SOCKET": notices.path, "WATCHDOG_USEC": "1000000",
            ]) { $1 }, standardError: log)
        defer {
            kill(pid, SIGKILL)
            _ = try? CanopydProgram.wait(pid)
        }
        while !(try hears(notices, "READY=1")) {}
        stage.server.freeze()
        try stage.desktop.freezeKeyring()
        let client = try RawClient(stage.desktop.directory.socketPath)
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        var pings = 0
        while pings < 6 { if try hears(notices, "WATCHDOG=1") { pings += 1 } }
        stage.server.thaw()
        try stage.desktop.thawKeyring()
        // The loop stands still: nobody pings for it.
        kill(pid, SIGSTOP)
        try eventually("it has stopped") {
            try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8).contains(") T ")
        }
        #expect(try notices.isSilent(for: 3), "somebody answers for a loop that stands still")
        kill(pid, SIGCONT)
        while !(try hears(notices, "WATCHDOG=1")) {}
    }

    private func hears(_ notices: NoticeSocket, _ line: Substring) throws -> Bool {
        try #require(try notices.receive(), "canopyd says nothing").lines.contains(line)
    }

    @Test("Who waits for a rotation in flight gets it from a canopyd that is told to stop")
    func stoppedInFlight() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try eventually("the request is in flight") { try stage.server.held() == 1 }
        kill(stage.daemon.pid, SIGTERM)
        try stage.server.release()
        #expect(try Stage.Answer(client.answer()).json.number("generation") == 1)
        #expect(try client.isAtEnd())
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        #expect(try stage.desktop.storedSession()?.number("generation") == 1)
    }

    @Test("Who waits for what nobody works on is told that canopyd stops")
    func stoppedWaiting() throws {
        let desktop = try PrivateDesktop()
        let logind = try Logind(desktop)
        let stage = try Stage(lifetime: 60, on: desktop)
        try stage.logIn()
        try logind.prepare(.shutdown, true)
        let waiting = try [
            Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"),
            Stage.request("POST", "/v1/profiles/default/refresh?timeout=60&if_generation=0"),
        ].map { request in
            let client = try stage.daemon.connect()
            try client.send(request)
            return client
        }
        let lucky = try stage.daemon.connect()
        try lucky.send(Stage.request("GET", "/v1/token"))
        #expect(try lucky.answer().status == 200)
        #expect(try stage.daemon.end(by: SIGTERM) == 0)
        for client in waiting {
            let answer = Stage.Answer(try client.answer())
            #expect(answer.status == 504)
            #expect(try answer.json.text("detail").contains("canopyd stops"))
        }
        #expect(try stage.server.refreshes() == 0)
    }
}
