import CLinux
import Foundation
import Glibc
import Testing

@Suite("A home that is a copy", .timeLimit(.minutes(25)))
struct CopyTests {
    /// How a home is brought back, from a copy of it to where it was.
    enum Restoring: CaseIterable {
        /// What has not changed stays the file that it was, the anchor above all.
        case changedFiles
        /// The same, and what has changed is written into the file that is there.
        case changedContents
        case freshHome
    }

    @Test(
        "Restored file by file: the old token is known for one, and is not presented",
        arguments: Restoring.allCases)
    func restored(_ restoring: Restoring) throws {
        let stage = try Stage(lifetime: 20)
        let home = stage.desktop.directory.path
        try stage.logIn()
        try pause(stage)
        for name in ["state", "data"] {
            try run("/bin/cp", "-a", "\(home)/\(name)", "\(home)/old-\(name)")
        }
        try goOn(stage)
        try stage.expectRotation()
        try stage.expectRotation()
        let presented = try stage.server.refreshes()
        try pause(stage)
        let anchor = try identity(ofAnchorIn: home)
        // After a reboot: nothing remembers but what was restored.
        try FileManager.default.removeItem(atPath: home + "/canopyd/marks")
        for name in ["state", "data"] {
            let (old, new) = ("\(home)/old-\(name)", "\(home)/\(name)")
            switch restoring {
            case .changedFiles:
                try run("/usr/bin/rsync", "-a", "--delete", old + "/", new)
            case .changedContents:
                try run("/usr/bin/rsync", "-a", "--inplace", "--delete", old + "/", new)
            case .freshHome:
                try FileManager.default.removeItem(atPath: new)
                try run("/bin/cp", "-a", old, new)
            }
        }
        #expect(
            try (identity(ofAnchorIn: home) == anchor) == (restoring != .freshHome),
            "the anchor is not what this test is about")
        try goOn(stage)
        #expect(try reason(stage.token()) == "restored_copy")
        #expect(try reason(stage.refresh()) == "restored_copy")
        #expect(try stage.server.refreshes() == presented)
        try stage.logIn()
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("A sign-in on a restored home ends what the copy vouched for, for ever")
    func signedInOnCopy() throws {
        let stage = try Stage(lifetime: 20)
        let home = stage.desktop.directory.path
        try stage.logIn()
        try pause(stage)
        try run("/bin/cp", "-a", home + "/data", home + "/old-data")
        try run("/bin/cp", "-a", home + "/state", home + "/copy")
        try FileManager.default.removeItem(atPath: home + "/state")
        try run("/bin/mv", home + "/copy", home + "/state")
        try FileManager.default.removeItem(atPath: home + "/canopyd/marks")
        try goOn(stage)
        #expect(try reason(stage.token()) == "restored_copy")
        // A sign-in that the server refuses: the state is written anew, and is no copy any more.
        #expect(try stage.tryLogin(password: "wrong").status == 422)
        #expect(try reason(stage.token()) == "restored_copy")
        try stage.killAndRestart()
        #expect(try reason(stage.token()) == "restored_copy")
        #expect(try stage.server.refreshes() == 0)
        try stage.logIn()
        try stage.expectRotation()
        // And not with the keyring of that time either.
        try pause(stage)
        try FileManager.default.removeItem(atPath: home + "/data")
        try run("/bin/cp", "-a", home + "/old-data", home + "/data")
        try goOn(stage)
        #expect(try stage.token().code == "signin_required")
        #expect(try stage.server.refreshes() == 1)
        try stage.server.expectNoIncident()
    }

    @Test(
        "A home copied to a second machine is another machine's there, and goes on on the first",
        .enabled(if: canNameMachine, "the kernel lets nobody bind /etc/machine-id"))
    func otherMachine() throws {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        try stage.desktop.stopKeyring()
        let second = try PrivateDesktop()
        try second.stopKeyring()
        for name in ["state", "data"] {
            try run(
                "/usr/bin/rsync", "-a", "\(stage.desktop.directory.path)/\(name)/",
                "\(second.directory.path)/\(name)")
        }
        try stage.desktop.startKeyring()
        try second.startKeyring()
        try second.directory.write("0123456789abcdef0123456789abcdef\n", "machine-id")
        let there = try RunningDaemon(
            in: second.directory, environment: second.environment,
            under: Self.command(namingMachine: second.directory.path + "/machine-id"))
        let client = try there.connect()
        for _ in 1...2 {
            try client.send(Stage.request("GET", "/v1/token"))
            #expect(try reason(Stage.Answer(try client.answer())) == "other_machine")
            // Whose session it is, and since when, is not this machine's to know.
            try client.send(Stage.request("GET", "/v1/profiles/default"))
            let shown = try Stage.Answer(client.answer()).json
            #expect(try shown.text("reason") == "other_machine")
            for key in ["url", "identity", "generation", "signed_in_at"] {
                #expect(!shown.has(key), "\(key)")
            }
            try client.send(Stage.request("POST", "/v1/profiles/default/refresh"))
            #expect(try reason(Stage.Answer(try client.answer())) == "other_machine")
        }
        #expect(try stage.server.refreshes() == 0)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    /// Runs a program on a machine of another name.
    private static func command(namingMachine path: String) -> [String] {
        [
            "/usr/bin/unshare", "--mount", "/bin/sh", "-c",
            "mount --bind \(path) /etc/machine-id && exec \"$0\" \"$@\"",
        ]
    }

    private static let canNameMachine: Bool = {
        do {
            let command = command(namingMachine: "/etc/machine-id") + ["/bin/true"]
            return try Program(
                command[0], Array(command.dropFirst()), environment: ["PATH": "/usr/bin:/bin"]
            ).end() == 0
        } catch {
            return false
        }
    }()

    /// Nothing of ours runs, and every file is as it will be read.
    private func pause(_ stage: Stage) throws {
        try stage.killDaemon()
        try stage.desktop.stopKeyring()
    }

    private func goOn(_ stage: Stage) throws {
        try stage.desktop.startKeyring()
        try stage.startDaemon()
    }

    private func reason(_ answer: Stage.Answer) throws -> String {
        #expect(answer.status == 401)
        return try answer.json.text("reason")
    }

    /// Inode and birth time: an inode that was freed is used again at once.
    private func identity(ofAnchorIn home: String) throws -> [Int64] {
        let machine = try #require(
            try FileManager.default.contentsOfDirectory(atPath: home + "/state/canopyd").first)
        let anchor = open("\(home)/state/canopyd/\(machine)/anchor", O_RDONLY | O_CLOEXEC)
        defer { close(anchor) }
        var birth = clinux_birth()
        try #require(clinux_birth_of(anchor, &birth) == 0 && birth.known != 0)
        return [Int64(birth.inode), birth.seconds, Int64(birth.nanoseconds)]
    }

    private func run(_ path: String, _ arguments: String...) throws {
        let program = try Program(path, arguments, environment: ["PATH": "/usr/bin:/bin"])
        let exitCode = try program.end()
        try #require(exitCode == 0, "\(path): \(program.output)")
    }
}
