import Foundation
import Glibc
import Testing

@Suite("The refresh token is in the keyring, and nowhere else", .timeLimit(.minutes(25)))
struct SecrecyTests {
    @Test("Neither files, nor the log, nor arguments and environment hold a refresh token")
    func files() throws {
        let (stage, secrets) = try stageAfterRotations()
        let root = stage.desktop.directory.path
        // The keyring's own file is encrypted, and everything else is looked at.
        var places: [String: [UInt8]] = [:]
        let files = try #require(FileManager.default.enumerator(atPath: root))
        for case let name as String in files {
            guard !(root + "/" + name).hasPrefix(stage.desktop.keyringDirectory),
                files.fileAttributes?[.type] as? FileAttributeType == .typeRegular
            else { continue }
            places[name] = try read(root + "/" + name)
        }
        places["the log"] = Array(stage.daemon.words.utf8)
        // Of an exchange in the middle of its work as well.
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try eventually("a rotation is under way") {
            try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=0"))
            _ = try client.answer()
            return try stage.server.held() == 1
        }
        for process in try [stage.daemon.pid] + stage.exchanges() {
            // canopyd is not dumpable: its environment is for root alone to read.
            for name in geteuid() == 0 ? ["cmdline", "environ"] : ["cmdline"] {
                places["\(process) \(name)"] = try read("/proc/\(process)/\(name)")
            }
        }
        let current = try #require(try stage.desktop.storedSession()).text("refresh_token")
        for (name, bytes) in places {
            for secret in secrets + [current, SandboxServer.Person.ada.password] {
                #expect(!contains(bytes, secret), "a secret is in \(name)")
            }
        }
        // Had it looked in the wrong place, it would not have found these.
        #expect(places.values.contains { contains($0, SandboxServer.Person.ada.email) })
        #expect(places.values.contains { contains($0, "canopyd-exchange") })
        try stage.server.release()
    }

    @Test(
        "canopyd's memory holds no refresh token and no password",
        .enabled(if: geteuid() == 0, "only root may read the memory of a process like canopyd"))
    func memory() throws {
        let (stage, secrets) = try stageAfterRotations()
        var memory: [[UInt8]] = []
        // Had it read the wrong memory, or missed some, it would not find this.
        try eventually("the access token is found, so that the search is known to work") {
            let access = try stage.goodToken().text("access_token")
            memory = try writableMemory(of: stage.daemon.pid)
            return memory.contains { contains($0, access) }
        }
        for secret in secrets + [SandboxServer.Person.ada.password] {
            #expect(!memory.contains { contains($0, secret) }, "a secret is in canopyd's memory")
        }
    }

    /// Signed in and rotated twice; with every refresh token so far that the keyring showed.
    private func stageAfterRotations() throws -> (Stage, [String]) {
        let stage = try Stage(lifetime: 20)
        try stage.logIn()
        var tokens: Set<String> = []
        for _ in 1...2 {
            tokens.insert(try #require(try stage.desktop.storedSession()).text("refresh_token"))
            try stage.expectRotation()
        }
        tokens.insert(try #require(try stage.desktop.storedSession()).text("refresh_token"))
        #expect(tokens.count == 3)
        return (stage, Array(tokens))
    }

    /// To the very end: Foundation takes the short reads of files in /proc for it.
    private func read(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0, "\(path): \(String(cString: strerror(errno)))")
        defer { close(descriptor) }
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            try #require(count >= 0)
            guard count > 0 else { return result }
            result += buffer[..<count]
        }
    }

    private func contains(_ bytes: [UInt8], _ secret: String) -> Bool {
        bytes.withUnsafeBytes { haystack in
            Array(secret.utf8).withUnsafeBytes { needle in
                Data(haystack).range(of: Data(needle)) != nil
            }
        }
    }

    /// What a stopped process can write to: one that goes on unmaps what it has wiped.
    private func writableMemory(of pid: pid_t) throws -> [[UInt8]] {
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        try eventually("it stands still") {
            let stat = String(decoding: try read("/proc/\(pid)/stat"), as: UTF8.self)
            return stat.split(separator: ")").last?.hasPrefix(" T") == true
        }
        let maps = String(decoding: try read("/proc/\(pid)/maps"), as: UTF8.self)
        let descriptor = open("/proc/\(pid)/mem", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var result: [[UInt8]] = []
        for line in maps.split(separator: "\n") {
            let fields = line.split(separator: " ", omittingEmptySubsequences: true)
            let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard bounds.count == 2, fields[1].hasPrefix("rw") else { continue }
            var bytes = [UInt8](repeating: 0, count: Int(bounds[1] - bounds[0]))
            let count = pread(descriptor, &bytes, bytes.count, off_t(bounds[0]))
            try #require(count == bytes.count, "not all of canopyd's memory could be read")
            result.append(Array(bytes[..<count]))
        }
        return result
    }
}
