import AgentCore
import Foundation
import Glibc
import Synchronization
import Testing

@Suite("canopyctl runs programs with a token, and follows rotations", .timeLimit(.minutes(25)))
struct ExecTests {
    /// Plays canopyd through one rotation: each subscription ends after its first event, and the
    /// second one, made again, tells of the next generation; with `mark`, the first one that is made
    /// once there is a file of that name in the socket's directory.
    private final class Rotating: Sendable {
        private let mark: String?
        private let place = Mutex("")
        private let generation = Atomic(-1)

        init(onceThereIs mark: String?) { self.mark = mark }

        func serve(in directory: String) { place.withLock { $0 = directory } }

        func answer(_ request: FakeDaemon.Request) -> FakeDaemon.Answer {
            if request.line.contains("/v1/events") {
                let path = place.withLock { directory in mark.map { directory + "/" + $0 } }
                let isFirst = generation.load(ordering: .relaxed) < 0
                let mayRotate = path.map { access($0, F_OK) == 0 } ?? true
                let generation = isFirst || !mayRotate ? 0 : 1
                self.generation.store(generation, ordering: .relaxed)
                return .raw(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                        + ": keep-alive\n\nevent: state\nid: 1\ndata: "
                        + #"{"profile":"default","state":"active","generation":\#(generation),"#
                        + #""expires_at":"2026-04-20T09:1\#(generation):00Z"}"# + "\n\n")
            }
            let generation = max(0, generation.load(ordering: .relaxed))
            return .json(HelperTests.tokenObject("token-\(generation)", generation: generation))
        }
    }

    /// Waits a minute for what takes a moment.
    private func eventually(_ what: String, _ isSo: () -> Bool) throws {
        let deadline = Date(timeIntervalSinceNow: 60)
        while !isSo() {
            try #require(Date() < deadline, "\(what) did not come")
            usleep(20_000)
        }
    }

    /// Which rotates once; with `mark`, not before a program has made a file of that name in
    /// `$XDG_RUNTIME_DIR`, to say that it is ready for it.
    private func daemon(rotatingOnceThereIs mark: String? = nil) throws -> FakeDaemon {
        let rotating = Rotating(onceThereIs: mark)
        let daemon = try FakeDaemon { rotating.answer($0) }
        rotating.serve(in: daemon.directory)
        return daemon
    }

    private func run(
        _ arguments: [String], _ daemon: FakeDaemon, input: String = ""
    ) throws -> Canopyctl.Outcome {
        try Canopyctl.run(
            arguments, daemon: daemon,
            environment: [
                "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": daemon.directory, "KEPT": "yes",
            ], input: input)
    }

    @Test("The program finds token, profile and file in its environment, and its exit code counts")
    func environment() throws {
        let daemon = try daemon(rotatingOnceThereIs: "never")
        let outcome = try run(
            [
                "exec", "--", "sh", "-c",
                #"echo "$CANOPY_ACCESS_TOKEN $CANOPY_PROFILE $KEPT"; cat "$CANOPY_ACCESS_TOKEN_FILE"; "#
                    + #"stat -c ' %a' "$CANOPY_ACCESS_TOKEN_FILE"; exit 42"#,
            ], daemon)
        #expect(outcome.exitCode == 42, "\(outcome.words)")
        #expect(outcome.output == "token-0 default yes\ntoken-0 600\n")
        let left = try FileManager.default.contentsOfDirectory(
            atPath: daemon.directory + "/canopyd")
        #expect(left.isEmpty, "the file of a program that has ended is left: \(left)")
    }

    @Test("The program's end is noticed where whoever started us ignores the ends of children")
    func childrenIgnored() throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            [
                "-s", "KILL", "60", "/usr/bin/env", "--ignore-signal=CHLD", try Canopyctl.path,
                "exec", "--", "sh", "-c", "exit 42",
            ], daemon: daemon,
            environment: ["PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": daemon.directory],
            program: "/usr/bin/timeout")
        #expect(outcome.exitCode == 42, "\(outcome.words)")
    }

    @Test("Another variable is used on request, and none that is no name")
    func variable() throws {
        let outcome = try run(
            ["exec", "--env", "MY_TOKEN", "--", "sh", "-c", "echo $MY_TOKEN-$CANOPY_ACCESS_TOKEN"],
            try daemon())
        #expect(outcome.output == "token-0-\n")
        for name in ["", "1A", "A=B", "A B"] {
            #expect(
                try run(["exec", "--env", name, "--", "true"], try daemon()).exitCode == 2)
        }
    }

    @Test("A program that cannot be run ends as it does in a shell")
    func notRun() throws {
        #expect(try run(["exec", "--", "no-such-program"], try daemon()).exitCode == 127)
        #expect(try run(["exec", "--", "/etc/passwd"], try daemon()).exitCode == 126)
        #expect(try run(["exec", "--", "sh", "-c", "kill -9 $$"], try daemon()).exitCode == 137)
        #expect(try run(["exec"], try daemon()).exitCode == 2)
    }

    @Test("E08: the file has the new token after a rotation, whatever the program was promised")
    func refreshedFile() throws {
        let outcome = try run(
            [
                "exec", "--", "sh", "-c",
                #"while ! grep -q token-1 "$CANOPY_ACCESS_TOKEN_FILE"; do sleep 0.1; done; "#
                    + #"echo "$CANOPY_ACCESS_TOKEN""#,
            ], try daemon())
        #expect(outcome.output == "token-0\n" && outcome.exitCode == 0)
    }

    @Test("E08: a rotation is told by the signal that was asked for, once the file has it")
    func signalled() throws {
        let outcome = try run(
            [
                "exec", "--on-rotate", "signal=USR1", "--", "sh", "-c",
                #"trap 'cat "$CANOPY_ACCESS_TOKEN_FILE"; exit 7' USR1; : >"$XDG_RUNTIME_DIR/ready"; "#
                    + "while :; do sleep 0.1; done",
            ], try daemon(rotatingOnceThereIs: "ready"))
        #expect(outcome.output == "token-1" && outcome.exitCode == 7, "\(outcome.words)")
    }

    @Test("E08: under nohup, too, a program hears the signal that was asked for")
    func heard() throws {
        let daemon = try daemon(rotatingOnceThereIs: "ready")
        let outcome = try Canopyctl.run(
            [
                "-s", "KILL", "60", "/usr/bin/env", "--ignore-signal=HUP,USR2", try Canopyctl.path,
                "exec", "--on-rotate", "signal=HUP", "--", "sh", "-c",
                #"trap 'cat "$CANOPY_ACCESS_TOKEN_FILE"; exit 7' HUP; kill -USR2 $$; "#
                    + #": >"$XDG_RUNTIME_DIR/ready"; "# + "while :; do sleep 0.1; done",
            ], daemon: daemon,
            environment: ["PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": daemon.directory],
            program: "/usr/bin/timeout")
        #expect(outcome.output == "token-1" && outcome.exitCode == 7, "\(outcome.words)")
    }

    @Test("E08: a program is started again with the new token")
    func restarted() throws {
        let outcome = try run(
            [
                "exec", "--on-rotate", "restart", "--", "sh", "-c",
                #"echo "$CANOPY_ACCESS_TOKEN"; [ "$CANOPY_ACCESS_TOKEN" = token-1 ] && exit 5; "#
                    + #": >"$XDG_RUNTIME_DIR/ready"; exec sleep 1000"#,
            ], try daemon(rotatingOnceThereIs: "ready"))
        #expect(outcome.output == "token-0\ntoken-1\n" && outcome.exitCode == 5)
    }

    @Test("Signals to canopyctl reach the program, and what ends it is told")
    func forwarded() throws {
        let daemon = try daemon()
        let ready = daemon.directory + "/ready"
        let pid = try Canopyctl.spawn(
            [
                try Canopyctl.path, "exec", "--", "sh", "-c",
                "trap 'exit 9' TERM; touch \(ready); while :; do sleep 0.1; done",
            ],
            [
                "CANOPYD_SOCKET": daemon.socketPath, "PATH": "/usr/bin:/bin",
                "XDG_RUNTIME_DIR": daemon.directory,
            ]
        ) { _ in }
        try eventually("the program's start") { access(ready, F_OK) == 0 }
        kill(pid, SIGTERM)
        #expect(try Canopyctl.wait(pid) == 9)
    }

    @Test("Nonsense after --on-rotate is refused by name", arguments: ["signal=NOPE", "kill"])
    func onRotate(_ text: String) throws {
        let outcome = try run(["exec", "--on-rotate", text, "--", "true"], try daemon())
        #expect(outcome.exitCode == 2 && outcome.words.contains("signal=SIG"))
    }

    @Test("watch says each state, keeps the file, and runs the command after each rotation")
    func watch() throws {
        let daemon = try daemon()
        let (file, log) = (daemon.directory + "/token", daemon.directory + "/log")
        let output = daemon.directory + "/output"
        let pid = try Canopyctl.spawn(
            [
                "/bin/sh", "-c",
                #"exec "$0" watch --write-file "$1" --exec 'echo "$CANOPY_GENERATION "#
                    + #"$(cat "$CANOPY_ACCESS_TOKEN_FILE")" >>\#(log)' >\#(output) 2>/dev/null"#,
                try Canopyctl.path, file,
            ], ["CANOPYD_SOCKET": daemon.socketPath, "PATH": "/usr/bin:/bin"]
        ) { _ in }
        defer {
            kill(pid, SIGKILL)
            _ = try? Canopyctl.wait(pid)
        }
        try eventually("the command after the rotation") {
            (try? String(contentsOfFile: log, encoding: .utf8))?.contains("1 token-1\n") == true
        }
        #expect(try String(contentsOfFile: log, encoding: .utf8) == "0 token-0\n1 token-1\n")
        var status = stat()
        #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "token-1")
        let lines = try String(contentsOfFile: output, encoding: .utf8)
        #expect(lines.contains(" default active\n"))
    }

    @Test("watch of a profile that nobody signed in as ends with its own code")
    func watchUnknown() throws {
        let daemon = try FakeDaemon { _ in .problem(.unknownProfile) }
        #expect(try run(["watch"], daemon).exitCode == 8)
        #expect(try Canopyctl.run(["watch"], environment: [:]).exitCode == 3)
    }

    @Test("A token file that cannot be written is named, and tried again with the next token")
    func unwritable() throws {
        let daemon = try daemon()
        try watch("/nowhere/token", daemon, until: "a second complaint") {
            $0.components(separatedBy: "/nowhere/token").count > 2
        }
    }

    /// Has a watch write the token file until what it has said on standard error is as it should be.
    private func watch(
        _ file: String, _ daemon: FakeDaemon, until what: String, _ isDone: (String) -> Bool
    ) throws {
        let name = file.split(separator: "/").joined(separator: "-")
        let words = daemon.directory + "/words-of-" + name
        let pid = try Canopyctl.spawn(
            [
                "/bin/sh", "-c", #"exec "$0" watch --write-file '\#(file)' 2>'\#(words)'"#,
                try Canopyctl.path,
            ], ["CANOPYD_SOCKET": daemon.socketPath]
        ) { _ in }
        defer {
            kill(pid, SIGKILL)
            _ = try? Canopyctl.wait(pid)
        }
        try eventually(what) {
            isDone((try? String(contentsOfFile: words, encoding: .utf8)) ?? "")
        }
    }

    @Test(
        "Of what stands at a token file's path a link is followed, and no device or pipe replaced")
    func otherThanFile() throws {
        let daemon = try daemon()
        let place = daemon.directory
        try #require(mkfifo(place + "/pipe", 0o600) == 0)
        try #require(mkdir(place + "/memory", 0o700) == 0)
        try #require(symlink("memory/token", place + "/relative") == 0)
        try #require(symlink(place + "/relative", place + "/absolute") == 0)
        try #require(symlink("circle", place + "/circle") == 0)
        try #require(symlink("pipe", place + "/to-pipe") == 0)
        func watch(_ name: String, until isDone: (String) -> Bool) throws {
            try self.watch(
                place + "/" + name, daemon, until: "\(name) is written or refused", isDone)
        }
        func look(_ name: String) -> (kind: mode_t, number: ino_t) {
            var status = stat()
            guard lstat(place + "/" + name, &status) == 0 else { return (0, 0) }
            return (status.st_mode & S_IFMT, status.st_ino)
        }
        func kind(_ name: String) -> mode_t { look(name).kind }
        try watch("pipe") { $0.contains("\(place)/pipe is there, and is no file") }
        try watch("to-pipe") { $0.contains("\(place)/pipe is there, and is no file") }
        #expect(kind("pipe") == S_IFIFO && kind("to-pipe") == S_IFLNK)
        try watch("circle") { $0.contains("leads to itself") }
        // One that is not there yet is made, and then replaced.
        for _ in 1...2 {
            let before = look("memory/token").number
            try watch("absolute") { _ in
                kind("memory/token") == S_IFREG && look("memory/token").number != before
            }
            #expect(kind("absolute") == S_IFLNK && kind("relative") == S_IFLNK)
            let token = try String(contentsOfFile: place + "/memory/token", encoding: .utf8)
            #expect(token.hasPrefix("token-"))
        }
    }

    @Test("A token file that could not be written is, once it can be, before the next rotation")
    func late() throws {
        // One event, and then nothing more for as long as the test runs.
        let daemon = try FakeDaemon { request in
            request.line.contains("/v1/events")
                ? .stream(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: state\ndata: "
                        + #"{"state":"active","generation":0,"expires_at":"2026-04-20T09:15:00Z"}"#
                        + "\n\n")
                : .json(HelperTests.tokenObject("token-0", generation: 0))
        }
        let directory = daemon.directory + "/later"
        let words = daemon.directory + "/words"
        let pid = try Canopyctl.spawn(
            [
                "/bin/sh", "-c",
                #"exec >/dev/null 2>'\#(words)'; umask 777; "#
                    + #"exec "$0" watch --write-file '\#(directory)/token'"#,
                try Canopyctl.path,
            ], ["CANOPYD_SOCKET": daemon.socketPath]
        ) { _ in }
        defer {
            kill(pid, SIGKILL)
            _ = try? Canopyctl.wait(pid)
        }
        let token = directory + "/token"
        try eventually("the complaint") {
            (try? String(contentsOfFile: words, encoding: .utf8))?.contains("cannot be written")
                == true
        }
        try #require(mkdir(directory, 0o700) == 0)
        try eventually("the file") {
            (try? String(contentsOfFile: token, encoding: .utf8)) == "token-0"
        }
        // Whatever the umask is, it is there to be read.
        var status = stat()
        #expect(stat(token, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test("A rotation whose token could not be written at once is told of once it is")
    func lateSignal() throws {
        let outcome = try run(
            [
                "exec", "--on-rotate", "signal=USR1", "--", "sh", "-c",
                #"file=$CANOPY_ACCESS_TOKEN_FILE; directory=${file%/*}; "#
                    + #"trap 'cat "$file"; exit 7' USR1; mv "$directory" "$directory.away"; "#
                    + #": >"$XDG_RUNTIME_DIR/ready"; until grep -q 'cannot be written' /proc/self/fd/2; do sleep 0.1; done; "#
                    + #"mv "$directory.away" "$directory"; while :; do sleep 0.1; done"#,
            ], try daemon(rotatingOnceThereIs: "ready"))
        #expect(outcome.output == "token-1" && outcome.exitCode == 7, "\(outcome.words)")
        #expect(outcome.words.contains("the token file cannot be written"))
    }
}
