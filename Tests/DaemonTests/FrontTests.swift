import Foundation
import Glibc
import Testing

@Suite("Servers that redirect, or answer in HTTP/2", .timeLimit(.minutes(60)))
struct FrontTests {
    /// How many rotations; `CANOPYD_ROTATIONS=1000 swift test --filter FrontTests` makes it a thousand.
    private static let rotations =
        ProcessInfo.processInfo.environment["CANOPYD_ROTATIONS"].flatMap { Int($0) } ?? 100

    private static let profiles = (1...16).map { "p\($0)" }

    @Test(
        "H08: redirects and HTTP/2 in between, rotation after rotation: nothing followed, lost or left over"
    )
    func rotations() throws {
        let stage = try Stage(
            // Under a sanitizer an exchange takes a second of a processor: that is to end, too.
            lifetime: Sanitizer.isOn ? 20 : 3,
            sandbox: [
                "--identities", "\(Self.profiles.count)", "--no-throttle", "--no-history",
                // A busy machine may take longer over a repetition than "moments".
                "--grace", "600",
            ])
        let front = try TLSFront(to: stage.server.port)
        let usual = try #require(front.ports[.serves])
        let switchboard = try Switchboard(to: usual)
        try stage.desktop.directory.write(
            "[network]\nCAFile=\(front.certificate)\n", "conf/canopyd/canopyd.conf")
        try stage.killAndRestart()
        let pid = stage.daemon.pid
        for (number, profile) in Self.profiles.enumerated() {
            let answer = try stage.tryLogin(
                profile, as: .user(number + 1), url: "https://127.0.0.1:\(switchboard.port)")
            try #require(answer.status == 200, "\(answer.body)")
        }

        /// Lets every second connection meet one that is no good, until so many rotations were made.
        func rotate(_ count: Int) throws -> [TLSFront.Manner: Int] {
            let odd = TLSFront.Manner.all.filter { $0 != .serves }
            let ports = try odd.map { try #require(front.ports[$0]) }
            var led: [TLSFront.Manner: Int] = [:]
            var turn = 0
            let before = try generations()
            try eventually(within: 3000, "\(count) rotations; \(stage.daemon.words)") {
                if switchboard.waiting < 8 {
                    switchboard.lead(to: [ports[turn % ports.count], usual])
                    led[odd[turn % odd.count], default: 0] += 1
                    turn += 1
                }
                return try generations() - before >= count
            }
            return led
        }
        func generations() throws -> Int {
            try Self.profiles.map { try stage.generation($0) }.reduce(0, +)
        }
        /// Once nothing is under way: what canopyd has open, and its memory in kB.
        func atRest() throws -> (files: [String], memory: Int) {
            switchboard.lead(to: [])
            var files: [String] = []
            // Between two rotations there is a moment without an exchange.
            try eventually(within: 60, "no exchange runs") {
                guard try stage.exchanges().isEmpty else { return false }
                files = try stage.daemon.openFiles()
                return try stage.exchanges().isEmpty
            }
            return (files, try stage.daemon.anonymousMemory())
        }

        // What is made once is there after the first of them.
        _ = try rotate(Self.profiles.count * 3)
        let before = try atRest()
        let led = try rotate(Self.rotations)
        var after = try atRest()
        // A client that has just closed is one for another moment.
        try eventually(
            within: 60, "nothing more is open: \(after.files.difference(from: before.files))"
        ) {
            after = try atRest()
            return after.files.count <= before.files.count
        }
        // Less than a kilobyte for each, and an allocator's moods.
        #expect(
            after.memory - before.memory <= 256 + Self.rotations / 10,
            "from \(before.memory) to \(after.memory) kB")
        #expect(TLSFront.Manner.all.filter { $0 != .serves && led[$0] == nil }.isEmpty, "\(led)")
        #expect(try front.followed() == "")
        #expect(stage.daemon.pid == pid && kill(pid, 0) == 0)
        #expect(!stage.daemon.words.contains("ended without a report"), "\(stage.daemon.words)")
        for profile in Self.profiles {
            try eventually(within: 60, "\(profile) has a good token") {
                try stage.token(profile).status == 200
            }
        }
        try stage.server.expectNoIncident()
    }

    @Test("A redirect is told as somebody in between, and HTTP/2 as an answer that is none")
    func words() throws {
        let stage = try Stage(sandbox: ["--grace", "600"])
        let front = try TLSFront(to: stage.server.port)
        let usual = try #require(front.ports[.serves])
        let switchboard = try Switchboard(to: usual)
        try stage.desktop.directory.write(
            "[network]\nCAFile=\(front.certificate)\n", "conf/canopyd/canopyd.conf")
        try stage.killAndRestart()
        let url = "https://127.0.0.1:\(switchboard.port)"
        for manner in [.redirects(307), .insistsOnHTTP2, .answersInHTTP2] as [TLSFront.Manner] {
            switchboard.lead(to: [try #require(front.ports[manner])])
            let answer = try stage.tryLogin(url: url)
            #expect(answer.status >= 500, "\(manner): \(answer.body)")
            if case .redirects = manner {
                #expect(try answer.json.text("detail").contains("proxy"), "\(answer.body)")
            }
        }
        #expect(try stage.tryLogin(url: url).status == 200)
        #expect(try front.followed() == "")
    }

    @Test("SSLKEYLOGFILE, which browsers are debugged with, gives nobody the keys of a connection")
    func keyLog() throws {
        let directory = try TestDirectory()
        let log = directory.path + "/keys"
        let stage = try Stage(under: ["/usr/bin/env", "SSLKEYLOGFILE=\(log)"])
        let front = try TLSFront(to: stage.server.port)
        try stage.desktop.directory.write(
            "[network]\nCAFile=\(front.certificate)\n", "conf/canopyd/canopyd.conf")
        try stage.killAndRestart()
        let port = try #require(front.ports[.serves])
        #expect(try stage.tryLogin(url: "https://127.0.0.1:\(port)").status == 200)
        #expect(access(log, F_OK) != 0)
    }
}
