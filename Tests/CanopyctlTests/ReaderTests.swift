import AgentCore
import CLinux
import Foundation
import Glibc
import Testing

@Suite("A reader that has gone is no news, and no success", .timeLimit(.minutes(25)))
struct ReaderTests {
    private static let profile =
        #"{"profile":"default","state":"active","url":"https://u","generation":7,"#
        + #""identity":{"id":"i","email":"a@example.com"},"expires_at":"2999-01-01T00:00:00Z"}"#

    /// Whatever is asked gets an answer with something to print.
    private static func daemon() throws -> FakeDaemon {
        try FakeDaemon { request in
            let path = request.line.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            if path.hasSuffix("/sessions") { return .json(#"{"sessions":[{"id":"s"}]}"#) }
            if path.hasSuffix("/identity") { return .json(#"{"id":"i","email":"a@example.com"}"#) }
            if path.hasPrefix("/v1/events") { return stream }
            if path == "/v1/profiles" { return .json(#"{"profiles":[\#(profile)]}"#) }
            if path == "/v1/status" {
                return .json(
                    #"{"version":"1","started_at":"2020-01-01T00:00:00Z","connections":1,"#
                        + #""keyring":{"state":"ok"},"profiles":[\#(profile)]}"#)
            }
            guard !request.head.contains("text/plain") else { return .token("a-token") }
            return .json(
                #"{"profile":"default","access_token":"a-token","token_type":"Bearer","#
                    + #""expires_at":"2999-01-01T00:00:00Z","refresh_at":"2999-01-01T00:00:00Z","#
                    + #""expires_in":900,"generation":7}"#)
        }
    }

    /// A pipe: its end to read from, and the one to write to.
    private static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        try #require(Glibc.pipe(&ends) == 0)
        for end in ends { _ = clinux_set_close_on_exec(end, 1) }
        return (ends[0], ends[1])
    }

    /// Runs the program with standard output on `output`, which is closed then; how it ended, and what
    /// it said besides.
    private static func start(
        _ arguments: [String], _ daemon: FakeDaemon?, to output: Int32
    ) throws -> (pid: pid_t, words: Int32) {
        let words = clinux_memfd_create("words")
        var environment = ["PATH": "/usr/bin:/bin", "HOME": "/nonexistent"]
        if let daemon { environment["CANOPYD_SOCKET"] = daemon.socketPath }
        let pid = try Canopyctl.spawn(arguments, environment) { actions in
            posix_spawn_file_actions_adddup2(&actions, output, 1)
            posix_spawn_file_actions_adddup2(&actions, words, 2)
        }
        close(output)
        return (pid, words)
    }

    private static func contents(_ descriptor: Int32) -> String {
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }

    @Test(
        "Every command ends by SIGPIPE and says nothing",
        arguments: [
            ["--help"], ["--version"], ["token", "--help"], ["token", "--version"], ["status"],
            ["status", "--json"], ["profiles"], ["whoami"], ["sessions"], ["token"], ["header"],
            ["token", "--json"], ["refresh", "--json"], ["watch", "--json"],
            ["completion", "bash"], ["kube-credential"], ["setup-headless"], ["doctor"],
            ["doctor", "--json"],
        ], [false, true])
    func gone(_ command: [String], isIgnored: Bool) throws {
        let daemon = try command.first == "watch" ? Self.streaming() : Self.daemon()
        let (reading, writing) = try Self.pipe()
        close(reading)
        // As a service of systemd's has it, and what it starts.
        let wrapper = isIgnored ? ["/usr/bin/env", "--ignore-signal=PIPE"] : []
        let (pid, words) = try Self.start(
            wrapper + [try Canopyctl.path] + command, daemon, to: writing)
        #expect(try Canopyctl.wait(pid) == 128 + SIGPIPE)
        #expect(Self.contents(words) == "")
    }

    private static func streaming() throws -> FakeDaemon {
        try FakeDaemon { _ in stream }
    }

    private static let stream = FakeDaemon.Answer.stream(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
            + "id: 1\nevent: state\ndata: \(profile)\n\n")

    @Test("A token of which the reader took a part does not count as handed out")
    func half() throws {
        // More than a pipe holds.
        let token = String(repeating: "t", count: 300_000)
        let daemon = try FakeDaemon { _ in .token(token) }
        for command in ["token", "header"] {
            let (reading, writing) = try Self.pipe()
            let (pid, words) = try Self.start([try Canopyctl.path, command], daemon, to: writing)
            var bytes = [UInt8](repeating: 0, count: 1000)
            try #require(read(reading, &bytes, bytes.count) > 0)
            close(reading)
            #expect(try Canopyctl.wait(pid) == 128 + SIGPIPE)
            #expect(Self.contents(words) == "")
        }
    }

    @Test("watch ends when its reader goes, and not with the next event only", arguments: [1, 2])
    func watch(_ kind: Int) throws {
        let daemon = try Self.streaming()
        var (reading, writing) = try Self.pipe()
        if kind == 2 {
            // As sshd without a terminal hands it to a command.
            for end in [reading, writing] { close(end) }
            var ends: [Int32] = [0, 0]
            let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
            (reading, writing) = (ends[0], ends[1])
        }
        let (pid, words) = try Self.start([try Canopyctl.path, "watch"], daemon, to: writing)
        var bytes = [UInt8](repeating: 0, count: 1000)
        try #require(read(reading, &bytes, bytes.count) > 0)
        close(reading)
        #expect(try Canopyctl.wait(pid) == 128 + SIGPIPE)
        #expect(Self.contents(words) == "")
    }

    @Test("watch goes on where nobody was to read it", arguments: ["/dev/null", "file"])
    func unread(_ place: String) throws {
        let daemon = try Self.streaming()
        let file = daemon.directory + "/token-of-command"
        let output = place == "file" ? daemon.directory + "/output" : place
        let script = "exec \"$0\" watch --exec 'echo done >\(file)' >\(output)"
        let (_, unused) = try Self.pipe()
        let (pid, words) = try Self.start(
            ["/bin/sh", "-c", script, try Canopyctl.path], daemon, to: unused)
        let deadline = Date(timeIntervalSinceNow: 120)
        while access(file, F_OK) != 0, Date() < deadline { usleep(10_000) }
        #expect(access(file, F_OK) == 0)
        var status: Int32 = 0
        #expect(waitpid(pid, &status, WNOHANG) == 0)
        kill(pid, SIGTERM)
        #expect(try Canopyctl.wait(pid) == 128 + SIGTERM)
        #expect(Self.contents(words) == "")
    }

    @Test("A closed standard output is a failure, and nothing goes where its number leads")
    func closedOutput() throws {
        let daemon = try Self.daemon()
        for command in ["token", "header", "status", "kube-credential"] {
            let outcome = try Canopyctl.run(
                ["-c", "exec \"$0\" \(command) >&-", try Canopyctl.path], daemon: daemon,
                program: "/bin/sh")
            #expect(outcome.exitCode == 1)
            #expect(outcome.words.contains("the output cannot be written"), "\(outcome.words)")
        }
        #expect(daemon.requests.count == 4)
        // Its connection, which stays open, would have the output's number.
        let watch = try Canopyctl.run(
            ["-c", "exec timeout 60 \"$0\" watch >&-", try Canopyctl.path],
            daemon: Self.streaming(), environment: ["PATH": "/usr/bin:/bin"], program: "/bin/sh")
        #expect(watch.exitCode == 1)
        #expect(watch.words.contains("the output cannot be written"), "\(watch.words)")
    }

    @Test("A closed standard input cannot be read, and closed errors are not canopyd's to read")
    func closedOthers() throws {
        let daemon = try Self.daemon()
        let login = try Canopyctl.run(
            [
                "-c", "exec \"$0\" login --key pk_x --email a@example.com --password-stdin <&-",
                try Canopyctl.path,
            ], daemon: daemon, program: "/bin/sh")
        #expect(login.exitCode == 1)
        #expect(login.words.contains("standard input cannot be read"), "\(login.words)")
        #expect(daemon.requests.isEmpty)
        let refused = try FakeDaemon { _ in .problem(.signInRequired) }
        let token = try Canopyctl.run(
            ["-c", "exec \"$0\" token 2>&-", try Canopyctl.path], daemon: refused,
            program: "/bin/sh")
        #expect(token.exitCode == 4)
        #expect(token.output.isEmpty && token.words.isEmpty)
    }

    @Test("A program that exec runs finds closed what was closed")
    func closedForPrograms() throws {
        let daemon = try Self.daemon()
        let program = "ls /proc/self/fd/1 2>/dev/null; echo $? >&2"
        let script = "exec \"$0\" exec -- /bin/sh -c '\(program)' >&-"
        let outcome = try Canopyctl.run(
            ["-c", script, try Canopyctl.path], daemon: daemon, program: "/bin/sh")
        #expect(outcome.words.hasSuffix("2\n"), "\(outcome.words)")
    }
}
