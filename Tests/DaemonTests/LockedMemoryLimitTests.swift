import Foundation
import Glibc
import Testing

@Suite("Where memory may not be locked", .timeLimit(.minutes(25)))
struct LockedMemoryLimitTests {
    /// Runs a command that may lock no memory, or no more than so many bytes.
    private static func wrapper(bytes: Int = 0) -> [String] {
        let limit = ["/usr/bin/prlimit", "--memlock=\(bytes)", "--"]
        guard geteuid() == 0 else { return limit }
        // Root may lock what it likes, limit or not.
        return [
            "/usr/bin/setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "--",
        ] + limit
    }

    private static let warning = "Secrets are in memory that may be swapped to disk"

    private func warnings(_ stage: Stage) -> [Substring] {
        stage.daemon.words.split(separator: "\n").filter { $0.contains(Self.warning) }
    }

    @Test("canopyd and its exchanges work, and one line says what it means and how to mend it")
    func daemon() throws {
        let stage = try Stage(lifetime: 20, under: Self.wrapper())
        try #require(try lockedKilobytes(stage.daemon.pid) == 0, "memory can be locked here")
        try stage.logIn()
        for _ in 1...2 { try stage.expectRotation() }
        _ = try stage.goodToken()
        let lines = warnings(stage)
        #expect(lines.count == 1, "\(lines)")
        let line = try #require(lines.first)
        #expect(line.hasPrefix("canopyd: warning: "))
        #expect(line.contains("name=canopyd, error=mlock: "))
        #expect(line.contains("RLIMIT_MEMLOCK is 0 bytes"))
        #expect(line.contains("fix=systemctl --user edit canopyd: [Service] LimitMEMLOCK=8M"))
    }

    @Test("Where it is the exchanges alone, that is one line for all of them as well")
    func exchange() throws {
        let stage = try Stage(lifetime: 20)
        try stage.killDaemon()
        let built = URL(fileURLWithPath: try CanopydProgram.path).deletingLastPathComponent().path
        let place = stage.desktop.directory.path + "/place"
        try #require(mkdir(place, 0o700) == 0)
        try FileManager.default.copyItem(atPath: built + "/canopyd", toPath: place + "/canopyd")
        let command = (Self.wrapper() + [built + "/canopyd-exchange"]).joined(separator: " ")
        try stage.desktop.directory.writeProgram(
            "#!/bin/sh\nexec \(command)\n", "place/canopyd-exchange")
        stage.program = place + "/canopyd"
        try stage.startDaemon()
        try stage.logIn()
        for _ in 1...2 { try stage.expectRotation() }
        #expect(try lockedKilobytes(stage.daemon.pid) > 0)
        let lines = warnings(stage)
        #expect(lines.count == 1, "\(lines)")
        #expect(lines.first?.contains("name=canopyd-exchange, error=mlock: ") == true)
    }

    @Test("Where memory may be locked, nothing is said")
    func quiet() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.expectRotation()
        #expect(try lockedKilobytes(stage.daemon.pid) > 0, "RLIMIT_MEMLOCK is too low for this")
        #expect(warnings(stage).isEmpty)
    }

    @Test("canopyctl works, and says it once to whoever types a secret into it")
    func commandLine() throws {
        let stage = try Stage()
        let person = SandboxServer.Person.ada
        let signIn = try Program(
            "canopyctl",
            [
                "login", "--url", stage.server.url, "--key", stage.server.nativeKey, "--email",
                person.email, "--password-stdin",
            ], environment: stage.desktop.environment, input: person.password + "\n",
            under: Self.wrapper())
        #expect(try signIn.end() == 0, "\(signIn.output)")
        let warnings = signIn.output.split(separator: "\n").filter { $0.contains("warning") }
        #expect(warnings.count == 1, "\(signIn.output)")
        #expect(warnings.first?.contains("cannot be locked") == true)
        #expect(warnings.first?.contains("RLIMIT_MEMLOCK is 0 bytes") == true)
        #expect(warnings.first?.hasSuffix("raise the limit: ulimit -l 8192") == true)
        // What holds nothing secret says nothing.
        let status = try Program(
            "canopyctl", ["--version"], environment: stage.desktop.environment,
            under: Self.wrapper())
        #expect(try status.end() == 0)
        #expect(!status.output.contains("warning"))
    }

    private func lockedKilobytes(_ pid: pid_t) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmLck:") })
        return try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    }
}
