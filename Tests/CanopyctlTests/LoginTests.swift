import AgentCore
import Glibc
import Testing

@Suite("Signing in keeps secrets to itself", .timeLimit(.minutes(25)))
struct LoginTests {
    private static let profile =
        #"{"profile":"default","state":"active","url":"u","#
        + #""identity":{"id":"i","email":"ann@example.com"},"generation":0,"#
        + #""expires_at":"2999-01-01T00:00:00Z","signed_in_at":"2026-01-01T00:00:00Z"}"#
    private static let challenge =
        #"{"mfa":{"factors":["totp","recovery_code","email_otp","webauthn"],"#
        + #""challenge":"ch4llenge","expires_at":"2999-01-01T00:00:00Z"}}"#

    @Test("The password goes from standard input into the body, and nowhere else")
    func passwordFromInput() throws {
        let daemon = try FakeDaemon { _ in .json(Self.profile) }
        let outcome = try Canopyctl.run(
            ["login", "--email", "ann@example.com", "--password-stdin"], daemon: daemon,
            input: "hunter2 \"\\\nsecond line\n")
        #expect(outcome.exitCode == 0)
        let request = try #require(daemon.requests.first)
        #expect(request.line == "POST /v1/profiles/default/login HTTP/1.1")
        #expect(request.body == #"{"email":"ann@example.com","password":"hunter2 \"\\"}"#)
        #expect(!(outcome.output + outcome.words).contains("hunter2"))
        #expect(outcome.words.contains("signed in as ann@example.com, profile default"))
        #expect(outcome.words.contains("expires in"))
    }

    @Test("Lines that end as on another system are the same secrets", arguments: ["\n", "\r\n"])
    func lineEnds(_ end: String) throws {
        let daemon = try FakeDaemon { request in
            request.line.contains("/mfa")
                ? .json(Self.profile) : .json(Self.challenge, status: 202)
        }
        _ = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin", "--code-stdin"], daemon: daemon,
            input: "pass\rword\(end)123456\(end)")
        let bodies = daemon.requests.map(\.body)
        #expect(bodies.first?.contains(#""password":"pass\rword""#) == true)
        #expect(bodies.last?.contains(#""code":"123456""#) == true)
    }

    @Test("A sign-in that the server throttles says for how long, and is not tried again")
    func throttled() throws {
        let daemon = try FakeDaemon { _ in .problem(.throttled, #","retry_after":840"#) }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin"], daemon: daemon, input: "p")
        #expect(outcome.exitCode == 6)
        #expect(outcome.words.contains("; try again in 14 min"))
        #expect(daemon.requests.count == 1)
    }

    @Test("URL and key come from options, else from variables, else not at all")
    func server() throws {
        let daemon = try FakeDaemon { _ in .json(Self.profile) }
        let common = ["login", "-e", "a@b", "--password-stdin"]
        _ = try Canopyctl.run(
            common + ["--url", "https://u", "--key", "pk_1"], daemon: daemon,
            environment: ["CANOPY_URL": "x"], input: "p")
        _ = try Canopyctl.run(
            common, daemon: daemon,
            environment: ["CANOPY_URL": "https://v", "CANOPY_PUBLISHABLE_KEY": "pk_2"], input: "p")
        _ = try Canopyctl.run(common, daemon: daemon, input: "p")
        let rest = #""email":"a@b","password":"p"}"#
        #expect(
            daemon.requests.map(\.body) == [
                #"{"url":"https://u","publishable_key":"pk_1","# + rest,
                #"{"url":"https://v","publishable_key":"pk_2","# + rest, "{" + rest,
            ])
    }

    @Test(
        "A password as an argument is refused, and not repeated",
        arguments: [
            ["--password", "hunter2"], ["--password=hunter2"], ["--passwd=hunter2"], ["hunter2"],
            ["--code", "hunter2"], ["--password-stdin=hunter2"], ["--pass", "hunter2"],
        ])
    func argument(arguments: [String]) throws {
        let daemon = try FakeDaemon { _ in .json(Self.profile) }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b"] + arguments, daemon: daemon, input: "p")
        #expect(outcome.exitCode == 2)
        #expect(!(outcome.words + outcome.output).contains("hunter2"))
        #expect(daemon.requests.isEmpty)
    }

    @Test(
        "What cannot be a password is a usage error",
        arguments: ["", "\nsecond\n", String(repeating: "x", count: 4097) + "\n"])
    func badPassword(input: String) throws {
        let daemon = try FakeDaemon { _ in .json(Self.profile) }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin"], daemon: daemon, input: input)
        #expect(outcome.exitCode == 2)
        #expect(daemon.requests.isEmpty)
    }

    @Test("The longest password passes")
    func longPassword() throws {
        let daemon = try FakeDaemon { _ in .json(Self.profile) }
        let password = String(repeating: "x", count: 4096)
        _ = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin"], daemon: daemon, input: password + "\n")
        #expect(daemon.requests.first?.body.contains("\"\(password)\"") == true)
    }

    @Test("Without a terminal, what is missing is a usage error that names the option")
    func noTerminal() throws {
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b"], environment: ["CANOPYD_SOCKET": "/nowhere"])
        #expect(outcome.exitCode == 2)
        #expect(outcome.words.contains("--password-stdin"))
        let noEmail = try Canopyctl.run(
            ["login", "--password-stdin"], environment: ["CANOPYD_SOCKET": "/nowhere"], input: "p")
        #expect(noEmail.exitCode == 2)
        #expect(noEmail.words.contains("--email"))
    }

    @Test("A refused password ends with 4, after one attempt")
    func refused() throws {
        let daemon = try FakeDaemon { _ in .problem(.credentialsRejected) }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin"], daemon: daemon, input: "hunter2")
        #expect(outcome.exitCode == 4)
        #expect(outcome.words.contains("because of this"))
        #expect(daemon.requests.count == 1)
    }

    // MARK: - The second factor

    @Test(
        "The code is the second line, and its form says which factor it proves",
        arguments: [
            ("123456", "totp"), ("12345678", "email_otp"),
            ("ABCD-EFGH-IJKL-MNOP", "recovery_code"),
        ])
    func codeFromInput(code: String, factor: String) throws {
        let daemon = try FakeDaemon { request in
            request.line.contains("/login")
                ? .json(Self.challenge, status: 202) : .json(Self.profile)
        }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin", "--code-stdin"], daemon: daemon,
            input: "hunter2\n\(code)\n")
        #expect(outcome.exitCode == 0)
        let request = try #require(daemon.requests.last)
        #expect(request.line == "POST /v1/profiles/default/mfa HTTP/1.1")
        #expect(
            request.body
                == #"{"challenge":"ch4llenge","factor":"\#(factor)","code":"\#(code)"}"#)
        #expect(!(outcome.words + outcome.output).contains(code))
    }

    @Test("A code by email is asked for before it is read")
    func email() throws {
        let daemon = try FakeDaemon { request in
            if request.line.contains("/login") || request.body.contains(#""send":true"#) {
                return .json(
                    #"{"mfa":{"factors":["email_otp"],"challenge":"c"}}"#, status: 202)
            }
            return .json(Self.profile)
        }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin", "--code-stdin"], daemon: daemon,
            input: "p\n12345678\n")
        #expect(outcome.exitCode == 0)
        #expect(
            daemon.requests.dropFirst().map(\.body) == [
                #"{"challenge":"c","factor":"email_otp","send":true}"#,
                #"{"challenge":"c","factor":"email_otp","code":"12345678"}"#,
            ])
    }

    @Test("A second factor without a terminal names --code-stdin")
    func noTerminalForCode() throws {
        let daemon = try FakeDaemon { _ in .json(Self.challenge, status: 202) }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin"], daemon: daemon, input: "p\n")
        #expect(outcome.exitCode == 2)
        #expect(outcome.words.contains("--code-stdin"))
    }

    @Test("A factor that needs a browser is named, and a recovery code stands in for it")
    func browserFactor() throws {
        let daemon = try FakeDaemon { _ in
            .json(#"{"mfa":{"factors":["webauthn"],"challenge":"c"}}"#, status: 202)
        }
        let outcome = try Canopyctl.run(
            ["login", "-e", "a@b", "--password-stdin"], daemon: daemon, input: "p\n")
        #expect(outcome.exitCode == 2)
        #expect(outcome.words.contains("recovery_code, webauthn"))
    }

    // MARK: - On a terminal

    @Test("On a terminal all that is missing is asked for, and the password is not shown")
    func terminal() throws {
        let daemon = try FakeDaemon { request in
            request.line.contains("/login")
                ? .json(Self.challenge, status: 202) : .json(Self.profile)
        }
        let terminal = try PseudoTerminal()
        let pid = try terminal.spawn(
            [try Canopyctl.path, "login"], ["CANOPYD_SOCKET": daemon.socketPath])
        try terminal.expect("canopyd.conf): ")
        terminal.type("pk_1\n")
        try terminal.expect("[https://auth.canopy-io.com]: ")
        terminal.type("\n")
        try terminal.expect("Email: ")
        terminal.type(" ann@example.com \n")
        try terminal.expect("Password for ann@example.com: ")
        terminal.type("hunter2\n")
        try terminal.expect("Which [1]: ")
        // A slip of the hand does not cost the sign-in.
        terminal.type("7\n")
        try terminal.expect("A number from 1 to 3")
        try terminal.expect("Which [1]: ")
        terminal.type("\n")
        try terminal.expect("Code: ")
        terminal.type("123456\n")
        try terminal.expect("signed in as ann@example.com")
        #expect(try Canopyctl.wait(pid) == 0)
        #expect(!terminal.shown.contains("hunter2") && !terminal.shown.contains("123456"))
        #expect(
            daemon.requests.first?.body
                == #"{"url":"https://auth.canopy-io.com","publishable_key":"pk_1","#
                + #""email":"ann@example.com","password":"hunter2"}"#)
        #expect(daemon.requests.last?.body.contains(#""code":"123456""#) == true)
    }

    @Test("Leaving the key to the configuration leaves the URL to it too")
    func configured() throws {
        let daemon = try FakeDaemon { _ in .json(Self.profile) }
        let terminal = try PseudoTerminal()
        let pid = try terminal.spawn(
            [try Canopyctl.path, "login", "-e", "a@b"], ["CANOPYD_SOCKET": daemon.socketPath])
        try terminal.expect("canopyd.conf): ")
        terminal.type("\n")
        try terminal.expect("Password for a@b: ")
        terminal.type("p\n")
        #expect(try Canopyctl.wait(pid) == 0)
        #expect(daemon.requests.first?.body == #"{"email":"a@b","password":"p"}"#)
    }

    @Test(
        "Whatever ends the prompt, the echo is back and the signal is felt",
        arguments: [("\u{3}", 130), ("\u{1C}", 131), ("\u{4}", 1)] as [(String, Int)])
    func echoRestored(key: String, status: Int) throws {
        let terminal = try PseudoTerminal()
        // The shell leads the session, so that the terminal outlives canopyctl.
        let script = """
            trap : INT QUIT; ulimit -c 0
            "$0" login -e a@b -k pk_1 -u https://u; echo "ended $?"; stty -a; echo "that is all"
            """
        let pid = try terminal.spawn(
            ["/bin/sh", "-c", script, try Canopyctl.path],
            ["CANOPYD_SOCKET": "/nowhere", "PATH": "/usr/bin:/bin"])
        try terminal.expect("Password for a@b: ")
        #expect(!terminal.echoes)
        terminal.type(key)
        try terminal.expect("that is all")
        _ = try Canopyctl.wait(pid)
        #expect(terminal.shown.contains("ended \(status)"))
        #expect(terminal.shown.contains(" echo "))
    }
}
