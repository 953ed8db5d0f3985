import CLinux
import Foundation
import Glibc
import Testing

@Suite("What users of such sockets were hurt by", .timeLimit(.minutes(25)))
struct SocketBehaviourTests {
    @Test("F01: a canopyd that does not answer is not robbed of its socket, with or without a lock")
    func stoppedOwner() throws {
        let daemon = try RunningDaemon()
        let before = try daemon.directory.status(daemon.socketPath).st_ino
        kill(daemon.pid, SIGSTOP)
        // Of another runtime directory, which nobody holds.
        let elsewhere = try TestDirectory()
        for _ in 0..<2 {
            let second = try CanopydProgram.run(
                in: elsewhere, environment: ["CANOPYD_SOCKET": daemon.socketPath])
            #expect(second.exitCode == 1)
            #expect(second.words.contains("already running"))
            #expect(try daemon.directory.status(daemon.socketPath).st_ino == before)
            // The second time round the kernel's word has to do alone.
            unlink(daemon.directory.path + "/canopyd/agent.lock")
        }
        kill(daemon.pid, SIGCONT)
        try daemon.connect().expectService()
    }

    @Test("F01: a socket whose queue is full is alive")
    func fullQueue() throws {
        let directory = try TestDirectory()
        try #require(mkdir(directory.path + "/canopyd", 0o700) == 0)
        let listener = try UnixSocket.make(SOCK_STREAM)
        defer { close(listener) }
        try #require(UnixSocket.call(bind, listener, directory.socketPath) == 0)
        try #require(listen(listener, 0) == 0)
        var clients: [Int32] = []
        defer { for client in clients { close(client) } }
        repeat {
            clients.append(
                try UnixSocket.make(
                    __socket_type(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)))
        } while UnixSocket.call(connect, clients[clients.count - 1], directory.socketPath) == 0
        #expect(errno == EAGAIN)
        let outcome = try CanopydProgram.run(in: directory)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("already running"))
        #expect(access(directory.socketPath, F_OK) == 0)
    }

    @Test("F09: a runtime directory that is too long is refused by all, with what to do")
    func longDirectory() throws {
        let directory = try TestDirectory()
        let long = directory.path + "/" + String(repeating: "d", count: 150)
        try #require(mkdir(long, 0o700) == 0)
        let path = long + "/canopyd/agent.sock"
        let outcome = try CanopydProgram.run(in: directory, environment: ["XDG_RUNTIME_DIR": long])
        let client = try Program(
            "canopyctl", ["status"],
            environment: ["XDG_RUNTIME_DIR": long, "HOME": directory.path])
        #expect(outcome.exitCode == 1)
        #expect(try client.end() != 0)
        for words in [outcome.words, client.output] {
            #expect(words.contains("\(path.utf8.count) bytes"))
            #expect(words.contains("107"))
            #expect(words.contains("CANOPYD_SOCKET"))
        }
        // Nothing was made where the path would have been cut off.
        #expect(try FileManager.default.contentsOfDirectory(atPath: long).isEmpty)
    }

    @Test(
        "F11: who connects is who the kernel says, whatever becomes of the process",
        .enabled(if: getuid() == 0, "only root can be somebody else"))
    func otherUser() throws {
        let daemon = try RunningDaemon()
        // As a user would who loosens what canopyd has set.
        chmod(daemon.directory.path, 0o755)
        chmod(daemon.directory.path + "/canopyd", 0o755)
        chmod(daemon.socketPath, 0o666)
        let stranger = try Program(
            "/usr/bin/python3",
            [
                "-c",
                """
                import os, socket, sys
                client = socket.socket(socket.AF_UNIX)
                os.setuid(65534)
                client.connect(sys.argv[1])
                try:
                    client.sendall(b"GET /v1/profiles HTTP/1.1\\r\\n\\r\\n")
                    data = client.recv(4096)
                except ConnectionError:
                    data = b""
                print("answered" if data else "refused")
                """, daemon.socketPath,
            ], environment: [:])
        #expect(try stranger.end() == 0)
        #expect(stranger.output == "refused\n")
        // Whoever exits at once, and has its number used again, is judged by the same word.
        for _ in 0..<100 {
            try Program(
                "/usr/bin/python3",
                [
                    "-Sc",
                    """
                    import os, socket, sys
                    client = socket.socket(socket.AF_UNIX)
                    client.connect(sys.argv[1])
                    client.send(b"GET /v1/profiles HTTP/1.1\\r\\n\\r\\n")
                    os._exit(0)
                    """, daemon.socketPath,
                ], environment: [:]
            ).end()
        }
        try daemon.connect().expectService()
        #expect(daemon.words.contains("A connection of another user was refused: uid=65534"))
    }

    @Test("F12: the socket's mode is the user's alone, whatever the umask, and stays so")
    func mode() throws {
        let daemon = try RunningDaemon()
        #expect(try daemon.directory.status(daemon.socketPath).st_mode & 0o777 == 0o600)
        #expect(
            try daemon.directory.status(daemon.directory.path + "/canopyd").st_mode & 0o777 == 0o700
        )
        let readme = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../README.md"), encoding: .utf8)
        #expect(readme.contains("## Programs of other users"))
        #expect(
            try CanopydProgram.run(["--socket-mode", "666"], in: daemon.directory).exitCode == 2)
    }

    @Test("F13: while one sign-in waits for the server, everybody else is served")
    func waitingSignIn() throws {
        let stage = try Stage()
        try stage.logIn("work", as: .grace)
        try stage.server.plan("hold", #","on":"login""#)
        let waiting = try stage.daemon.connect()
        let person = SandboxServer.Person.ada
        try waiting.send(
            Stage.request(
                "POST", "/v1/profiles/default/login",
                #"{"url":"\#(stage.server.url)","publishable_key":"\#(stage.server.nativeKey)","#
                    + #""email":"\#(person.email)","password":"\#(person.password)"}"#))
        try eventually("the sign-in is with the server") { try stage.server.held() == 1 }
        let before = try stage.goodToken("work").number("generation")
        try stage.expectRotation("work")
        #expect(try stage.goodToken("work").number("generation") > before)
        #expect(try stage.ask("GET", "/v1/profiles/work/identity").status == 200)
        #expect(try stage.server.held() == 1)
        try stage.server.release()
        #expect(try waiting.answer().status == 200)
    }

    @Test("F14: once it is known, a dead session is told from memory, with the command to type")
    func deadSession() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.revokeSessions(of: .ada)
        try eventually("the verdict") { try stage.refresh().status == 401 }
        try eventually("the exchange has ended") { try stage.exchanges().isEmpty }
        let asked = try stage.server.refreshes()
        for _ in 0..<20 {
            for answer in [try stage.token(), try stage.refresh()] {
                #expect(answer.status == 401)
                #expect(try answer.code == "signin_required")
                #expect(try answer.json.text("fix") == "canopyctl login")
            }
        }
        #expect(try stage.server.refreshes() == asked)
        #expect(try stage.exchanges().isEmpty)
    }

    @Test("F15: no configuration ends canopyd otherwise than by its own will", arguments: 1...8)
    func oddConfigurations(seed: UInt64) throws {
        let directory = try TestDirectory()
        var chance = SplitMix(state: seed)
        let good = Array(
            """
            [network]
            CAFile=/etc/ssl/company.pem
            Proxy=http://proxy.example:3128
            [rotation]
            Mode=on-demand
            [limits]
            Connections=100
            [profile work]
            URL=https://auth.example.com
            """.utf8)
        for _ in 0..<10 {
            let text = String(decoding: chance.damaged(good), as: UTF8.self)
            try directory.write(text, "conf/canopyd/canopyd.conf")
            let outcome = try CanopydProgram.run(["--check-config"], in: directory)
            #expect([0, 1].contains(outcome.exitCode), "\(text)")
        }
        // What is no file at all.
        try FileManager.default.removeItem(atPath: directory.path + "/conf/canopyd/canopyd.conf")
        try #require(mkdir(directory.path + "/conf/canopyd/canopyd.conf", 0o700) == 0)
        #expect(try CanopydProgram.run(["--check-config"], in: directory).exitCode == 1)
    }

    @Test("F15: a damaged state file hurts its own profile and no other")
    func oddStateFiles() throws {
        let stage = try Stage(sandbox: ["--no-throttle"])
        try stage.logIn("default")
        for index in 0..<40 { try stage.logIn("p\(index)", as: .grace) }
        try stage.killDaemon()
        let state = stage.desktop.directory.path + "/state/canopyd"
        let machine = try #require(
            try FileManager.default.contentsOfDirectory(atPath: state).first)
        var chance = SplitMix(state: 15)
        for index in 0..<40 {
            let file = URL(fileURLWithPath: "\(state)/\(machine)/p\(index).json")
            let bytes = chance.damaged(Array(try Data(contentsOf: file)))
            try Data(bytes).write(to: file)
        }
        try stage.startDaemon()
        #expect(try stage.goodToken().number("generation") == 0)
        for index in 0..<40 {
            // It is no other profile's file either, nor one that may be presented for.
            let answer = try stage.token("p\(index)")
            #expect([200, 401, 404, 503].contains(answer.status), "\(answer.status)")
        }
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }
}

/// Chance that a seed repeats.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// The bytes with something changed, cut off, doubled or put in.
    mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0...Int.random(in: 0..<3, using: &self) {
            let place = Int.random(in: 0..<max(1, bytes.count), using: &self)
            switch Int.random(in: 0..<4, using: &self) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &self)
            case 1: bytes = Array(bytes[..<max(1, place)])
            case 2: bytes += bytes[place...]
            default: bytes.insert(UInt8.random(in: 0...255, using: &self), at: place)
            }
        }
        return bytes
    }
}
