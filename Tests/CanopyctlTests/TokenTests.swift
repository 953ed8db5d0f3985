import Testing

@Suite("canopyctl hands tokens to scripts", .timeLimit(.minutes(25)))
struct TokenTests {
    @Test("token prints the token and a newline, and asks for it as text")
    func token() throws {
        let daemon = try FakeDaemon { _ in .token("aaa.bbb.ccc") }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.exitCode == 0)
        #expect(outcome.output == "aaa.bbb.ccc\n")
        #expect(outcome.words.isEmpty)
        let request = try #require(daemon.requests.first)
        #expect(request.line == "GET /v1/token?profile=default HTTP/1.1")
        #expect(request.head.contains("Accept: text/plain"))
        #expect(request.head.contains("Host: canopyd"))
    }

    @Test(
        "Options travel in the query, in their long and short forms",
        arguments: [
            ["token", "--profile", "work", "--min-validity", "60", "--timeout", "5"],
            ["token", "-p", "work", "-m60", "-t", "5"],
            ["token", "--profile=work", "--min-validity=60", "--timeout=5"],
        ])
    func query(arguments: [String]) throws {
        let daemon = try FakeDaemon { _ in .token("t") }
        #expect(try Canopyctl.run(arguments, daemon: daemon).exitCode == 0)
        #expect(
            daemon.requests.first?.line
                == "GET /v1/token?profile=work&min_validity=60&timeout=5 HTTP/1.1")
    }

    @Test("CANOPY_PROFILE stands in for --profile, and --profile wins")
    func profileVariable() throws {
        let daemon = try FakeDaemon { _ in .token("t") }
        let environment = ["CANOPY_PROFILE": "fromenv"]
        _ = try Canopyctl.run(["token"], daemon: daemon, environment: environment)
        _ = try Canopyctl.run(["token", "-p", "flag"], daemon: daemon, environment: environment)
        #expect(daemon.requests.map { $0.line.contains("profile=fromenv ") } == [true, false])
        #expect(daemon.requests[1].line.contains("profile=flag "))
    }

    @Test("header prints the whole header line")
    func header() throws {
        let daemon = try FakeDaemon { _ in .token("aaa.bbb.ccc") }
        let outcome = try Canopyctl.run(["header"], daemon: daemon)
        #expect(outcome.output == "Authorization: Bearer aaa.bbb.ccc\n")
        #expect(outcome.exitCode == 0)
    }

    @Test("token --json prints the token object as it came")
    func json() throws {
        let object = #"{"profile":"default","access_token":"x","generation":3}"#
        let daemon = try FakeDaemon { _ in .json(object) }
        let outcome = try Canopyctl.run(["token", "--json"], daemon: daemon)
        #expect(outcome.output == object + "\n")
        #expect(daemon.requests.first?.head.contains("Accept: application/json") == true)
    }

    @Test("A token of the largest size passes whole")
    func large() throws {
        let token = String(repeating: "a", count: 1 << 20)
        let daemon = try FakeDaemon { _ in .token(token) }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.output.utf8.count == (1 << 20) + 1)
    }

    @Test(
        "What is not one word is never printed as a token",
        arguments: ["", "two words", "line\nbreak", "nul\u{0}"])
    func notAToken(text: String) throws {
        let daemon = try FakeDaemon { _ in .token(text) }
        for command in ["token", "header"] {
            let outcome = try Canopyctl.run([command], daemon: daemon)
            #expect(outcome.exitCode == 1)
            #expect(outcome.output.isEmpty)
        }
    }

    @Test("JSON that comes instead of the text is not printed as a token")
    func jsonInsteadOfText() throws {
        let daemon = try FakeDaemon { _ in .json(#"{"access_token":"x"}"#) }
        let outcome = try Canopyctl.run(["token"], daemon: daemon)
        #expect(outcome.exitCode == 1)
        #expect(outcome.output.isEmpty)
    }

    @Test("A full standard output is a failure that is told")
    func fullOutput() throws {
        let daemon = try FakeDaemon { _ in .token("t") }
        let path = try Canopyctl.path
        let pid = try Canopyctl.spawn(
            ["/bin/sh", "-c", "\"$0\" token >/dev/full 2>/dev/null", path],
            ["CANOPYD_SOCKET": daemon.socketPath]
        ) { _ in }
        #expect(try Canopyctl.wait(pid) == 1)
    }

    @Test("So is a limit on the size of files")
    func limitedOutput() throws {
        let daemon = try FakeDaemon { _ in .token("a-token") }
        let outcome = try Canopyctl.run(
            ["--fsize=3", "--", try Canopyctl.path, "token"], daemon: daemon,
            program: "/usr/bin/prlimit")
        #expect(outcome.exitCode == 1)
        #expect(outcome.output == "a-t")
    }
}
