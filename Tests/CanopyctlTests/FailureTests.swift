import AgentCore
import Foundation
import Testing

@Suite("Failures have exit codes, words and a cure", .timeLimit(.minutes(25)))
struct FailureTests {
    /// INTERFACE, "Exit codes".
    private static func exitCode(_ code: Problem.Code) -> Int32 {
        switch code {
        case .notFound, .methodNotAllowed, .payloadTooLarge, .headerTooLarge, .storageFailed,
            .tooManyConnections:
            1
        case .badRequest: 2
        case .signInRequired, .credentialsRejected, .keyNotNative: 4
        case .keyringLocked, .keyringUnavailable: 5
        case .serverUnreachable, .serverError, .refused, .throttled: 6
        case .forbidden: 7
        case .unknownProfile: 8
        case .timeout: 9
        }
    }

    @Test("Every problem has the exit code of its kind", arguments: Problem.Code.allCases)
    func problem(code: Problem.Code) throws {
        let daemon = try FakeDaemon { _ in .problem(code, #","fix":"do this""#) }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.exitCode == Self.exitCode(code))
        #expect(outcome.output.isEmpty)
        let lines = outcome.words.split(separator: "\n")
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("canopyctl: ") == true)
        // What is not signed in needs no reason; the name may be a slip of the hand.
        let rest =
            code == .unknownProfile
            ? "; try: do this, or see the names: canopyctl profiles"
            : " (because of this); try: do this"
        #expect(lines.first?.hasSuffix(rest) == true)
    }

    @Test("A problem without a fix gets a cure of canopyctl's own")
    func ownCure() throws {
        let daemon = try FakeDaemon { _ in
            .problem(.signInRequired, #","profile":"work","reason":"rotation_lost""#)
        }
        let words = try Canopyctl.run(["token"], daemon: daemon).words
        #expect(words.contains("profile work"))
        // The detail says why; the reason's own words would say it twice.
        #expect(words.contains("a new sign-in is needed (because of this)"))
        #expect(words.contains("; sign in: canopyctl login --profile work"))
        let silent = try FakeDaemon { _ in
            .reply(
                401, "application/problem+json",
                #"{"code":"signin_required","reason":"rotation_lost"}"#)
        }
        #expect(try Canopyctl.run(["token"], daemon: silent).words.contains("answer was lost"))
    }

    @Test("Being throttled shows the wait")
    func throttled() throws {
        let daemon = try FakeDaemon { _ in .problem(.throttled, #","retry_after":90"#) }
        let outcome = try Canopyctl.run(["refresh"], daemon: daemon)
        #expect(outcome.exitCode == 6)
        #expect(outcome.words.contains("in 90 s"))
        #expect(daemon.requests.count == 1)
    }

    @Test("A code that canopyctl does not know is a failure with the daemon's words")
    func unknownCode() throws {
        let daemon = try FakeDaemon { _ in
            .reply(
                418, "application/problem+json",
                #"{"title":"Odd","code":"teapot","detail":"short and stout"}"#)
        }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("short and stout"))
    }

    @Test("Words of others cannot command the terminal")
    func escapes() throws {
        let daemon = try FakeDaemon { _ in
            .problem(.refused, #","fix":"\u001b[2Jevil\u0007\u202e\nmore""#)
        }
        let words = try Canopyctl.run(["token"], daemon: daemon).words
        #expect(words.contains("evil"))
        #expect(!words.contains("\u{1B}") && !words.contains("\u{7}"))
        #expect(!words.unicodeScalars.contains("\u{202E}"))
        #expect(words.split(separator: "\n").count == 1)
    }

    // MARK: - The daemon

    @Test("A socket that is not there, and one that nobody listens on, are a daemon not reached")
    func notReached() throws {
        let daemon = try FakeDaemon { _ in .token("t") }
        let missing = daemon.directory + "/missing.sock"
        let file = daemon.directory + "/file"
        try Data().write(to: URL(fileURLWithPath: file))
        for path in [missing, file] {
            let outcome = try Canopyctl.run(["token"], environment: ["CANOPYD_SOCKET": path])
            #expect(outcome.exitCode == 3)
            #expect(outcome.words.contains(path))
            #expect(outcome.words.contains("systemctl --user start canopyd"))
        }
    }

    @Test("A daemon that hangs up without an answer is not reached")
    func hangUp() throws {
        for answer in [FakeDaemon.Answer.hangUp, .slam] {
            let daemon = try FakeDaemon { _ in answer }
            #expect(try Canopyctl.run(["token"], daemon: daemon).exitCode == 3)
        }
    }

    @Test("A person at a terminal sees that canopyd is waited for, and nothing of it in the end")
    func progress() throws {
        let daemon = try FakeDaemon { _ in .silence }
        let terminal = try PseudoTerminal()
        let pid = try terminal.spawn(
            [try Canopyctl.path, "token", "--timeout", "0"],
            ["CANOPYD_SOCKET": daemon.socketPath, "TERM": "xterm"])
        try terminal.expect("waiting for canopyd, 1 s of at most \(Limits.clientGraceSeconds)")
        // Over it, from the line's beginning.
        try terminal.expect("\r\u{1B}[K")
        #expect(try Canopyctl.wait(pid) == 9)
        try terminal.expect("\r\u{1B}[K\u{1B}[31mcanopyctl:")
    }

    @Test("A daemon that never answers is a timeout, not a hang")
    func silence() throws {
        let daemon = try FakeDaemon { _ in .silence }
        let outcome = try Canopyctl.run(["token", "--timeout", "0"], daemon: daemon)
        #expect(!outcome.words.contains("waiting"))
        #expect(outcome.exitCode == 9)
        #expect(outcome.words.contains("did not answer within \(Limits.clientGraceSeconds) s"))
    }

    @Test(
        "An answer that is no answer is refused",
        arguments: [
            "220 mail.example.com ESMTP\r\n", "HTTP/1.1 200 OK\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 500 X\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\n" + String(repeating: "a", count: 20_000),
        ])
    func incomprehensible(bytes: String) throws {
        let daemon = try FakeDaemon { _ in .raw(bytes) }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("cannot be used"))
    }

    @Test("An answer that is cut short is no token")
    func cut() throws {
        let daemon = try FakeDaemon { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhalf")
        }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.exitCode == 3)
        #expect(outcome.output.isEmpty)
    }

    // MARK: - The socket's path

    @Test("A path over 107 bytes is refused with its length, the limit and the remedy")
    func longPath() throws {
        let path = "/tmp/" + String(repeating: "s", count: 103)
        let outcome = try Canopyctl.run(["status"], environment: ["CANOPYD_SOCKET": path])
        #expect(outcome.exitCode == 3)
        #expect(outcome.words.contains("108 bytes"))
        #expect(outcome.words.contains("at most 107"))
        #expect(outcome.words.contains("set CANOPYD_SOCKET"))
    }

    @Test("The socket is found under XDG_RUNTIME_DIR")
    func runtimeDirectory() throws {
        let daemon = try FakeDaemon { _ in .token("t") }
        let link = daemon.directory + "/canopyd"
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: daemon.directory)
        let environment = ["XDG_RUNTIME_DIR": daemon.directory + "/"]
        #expect(try Canopyctl.run(["token"], environment: environment).output == "t\n")
    }

    // MARK: - The command line

    @Test(
        "Mistakes on the command line are usage errors that name them",
        arguments: [
            (["tokens"], "tokens"), ([], "no command"), (["token", "--bogus"], "--bogus"),
            (["token", "-Z"], "-Z"), (["token", "--timeout"], "--timeout"),
            (["token", "--timeout", "121"], "0 to 120"), (["token", "--timeout", "-1"], "-1"),
            (["token", "--timeout", "1.5"], "1.5"), (["token", "--min-validity", ""], "empty"),
            (["token", "--min-validity", "99999999999999999999"], "whole"),
            (["token", "--json=yes"], "--json"), (["token", "extra"], "no other"),
            (["token", "--profile", "../x"], "--profile"), (["token", "-p", ""], "empty"),
            (["revoke"], "ID"), (["revoke", ""], "empty"), (["revoke", "a", "b"], "no other"),
            (["refresh", "--if-generation", "x"], "--if-generation"),
            (["logout", "--all", "-p", "x"], "exclude"), (["--bogus"], "--bogus"),
            (["curl", "-sS", "https://x.example/"], "put -- before"),
            (["exec", "--bogus", "true"], "put -- before"),
        ] as [([String], String)])
    func usage(arguments: [String], words: String) throws {
        let daemon = try FakeDaemon { _ in .token("t") }
        let outcome = try Canopyctl.run(arguments, daemon: daemon)
        #expect(outcome.exitCode == 2)
        #expect(outcome.words.contains(words))
        #expect(outcome.words.contains("--help"))
        #expect(outcome.output.isEmpty)
        #expect(daemon.requests.isEmpty)
    }

    @Test(
        "What a variable that is not set leaves of an option is a mistake of use",
        arguments: [
            ["watch", "--write-file", ""], ["watch", "--write-file="], ["watch", "--exec", ""],
            ["token", "--profile", ""], ["token", "-p", ""], ["exec", "--on-rotate", "", "true"],
        ])
    func emptyValue(_ arguments: [String]) throws {
        let daemon = try FakeDaemon { _ in .problem(.badRequest) }
        let outcome = try Canopyctl.run(arguments, daemon: daemon)
        #expect(outcome.exitCode == 2 && daemon.requests.isEmpty)
        #expect(outcome.words.contains("has an empty value"))
    }

    @Test("A bad CANOPY_PROFILE is named as such")
    func badVariable() throws {
        let outcome = try Canopyctl.run(["token"], environment: ["CANOPY_PROFILE": "a b"])
        #expect(outcome.exitCode == 2)
        #expect(outcome.words.contains("CANOPY_PROFILE"))
    }

    @Test(
        "Every command has --help and --version, which need no daemon",
        arguments: [
            [], ["login"], ["token"], ["header"], ["status"], ["profiles"], ["whoami"],
            ["sessions"], ["revoke"], ["refresh"], ["logout"],
        ])
    func help(command: [String]) throws {
        for option in ["--help", "-h"] {
            let help = try Canopyctl.run(command + [option])
            #expect(help.exitCode == 0)
            #expect(help.output.hasPrefix("usage: canopyctl"))
            #expect(!help.output.contains("SECRET"))
        }
        for option in ["--version", "-V"] {
            let version = try Canopyctl.run(command + [option])
            #expect(version.exitCode == 0)
            #expect(version.output == "canopyctl \(Version.text)\n")
        }
    }
}
