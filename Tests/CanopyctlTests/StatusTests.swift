import AgentCore
import Testing

@Suite("canopyctl tells people how things are", .timeLimit(.minutes(25)))
struct StatusTests {
    private static func status(_ profiles: String..., keyring: String = "ok") -> String {
        #"{"version":"1.2.3","started_at":"2020-01-01T00:00:00Z","keyring":{"state":"\#(keyring)","#
            + #""owner":"gnome-keyring"},"connections":1,"#
            + #""profiles":[\#(profiles.joined(separator: ","))]}"#
    }

    private static func profile(_ name: String, _ state: String, _ more: String = "") -> String {
        #"{"profile":"\#(name)","state":"\#(state)","url":"https://u","#
            + #""identity":{"id":"i","email":"\#(name)@example.com"},"generation":7\#(more)}"#
    }

    private static let good = #","expires_at":"2999-01-01T00:00:00Z""#

    @Test("status shows daemon, keyring and profiles at a glance")
    func status() throws {
        let daemon = try FakeDaemon { _ in
            .json(
                Self.status(
                    Self.profile("default", "active", Self.good),
                    Self.profile("a-longer-name", "refreshing", Self.good)))
        }
        let outcome = try Canopyctl.run(["status"], daemon: daemon)
        #expect(outcome.exitCode == 0)
        let lines = outcome.output.split(separator: "\n").map(String.init)
        #expect(lines[0].hasPrefix("canopyd 1.2.3, up "))
        #expect(lines[0].hasSuffix("1 connection"))
        #expect(lines[1] == "keyring ok (gnome-keyring)")
        let column = try #require(lines[2].firstRange(of: "STATE")?.lowerBound)
        #expect(lines[3][column...].hasPrefix("active"))
        #expect(lines[4][column...].hasPrefix("refreshing"))
        #expect(lines[3].contains("default@example.com") && lines[3].contains("7"))
        #expect(!outcome.output.contains("\u{1B}"))
        #expect(daemon.requests.map(\.line) == ["GET /v1/status HTTP/1.1"])
    }

    @Test(
        "In every state, status says what it means and ends as a request for a token would",
        arguments: ProfileState.allCases)
    func states(state: ProfileState) throws {
        let (code, words): (Int32, String) =
            switch state {
            case .active, .refreshing: (0, state.rawValue)
            case .degraded: (0, "good until it expires")
            case .keyringLocked: (5, "unlock the keyring")
            case .keyringUnavailable: (5, "what mends it is said by: canopyctl refresh --profile p")
            case .offline: (6, "tried again by itself")
            case .refused: (6, "canopyctl refresh --profile p")
            case .storageFailed: (1, "state directory")
            case .signInRequired: (4, "canopyctl login --profile p")
            }
        let more =
            #","reason":"restored_copy","last_error":{"code":"oops","detail":"why","#
            + #""at":"2020-01-01T00:00:00Z"}"#
        let daemon = try FakeDaemon { _ in
            .json(Self.status(Self.profile("p", state.rawValue, more)))
        }
        let outcome = try Canopyctl.run(["status"], daemon: daemon)
        #expect(outcome.exitCode == code)
        #expect(outcome.output.contains(words))
        #expect(outcome.output.contains("last error: oops (why)"))
        let json = try Canopyctl.run(["status", "--json"], daemon: daemon)
        #expect(json.exitCode == code)
        #expect(json.output.contains(#""state":"\#(state.rawValue)""#))
    }

    @Test("An unknown state is shown as it is, and is not called well")
    func unknownState() throws {
        let daemon = try FakeDaemon { _ in .json(Self.status(Self.profile("p", "dreaming"))) }
        let outcome = try Canopyctl.run(["status"], daemon: daemon)
        #expect(outcome.output.contains("dreaming"))
        #expect(outcome.exitCode == 1)
    }

    @Test("--profile shows that profile alone, and 8 says that there is none")
    func oneProfile() throws {
        let daemon = try FakeDaemon { _ in
            .json(
                Self.status(
                    Self.profile("a", "active", Self.good), Self.profile("b", "signin_required")))
        }
        let one = try Canopyctl.run(["status", "-p", "a"], daemon: daemon)
        #expect(one.exitCode == 0)
        #expect(!one.output.contains("b@example.com"))
        #expect(try Canopyctl.run(["status"], daemon: daemon).exitCode == 4)
        let none = try Canopyctl.run(["status", "-p", "c"], daemon: daemon)
        #expect(none.exitCode == 8 && none.words.contains("nothing is signed in as profile c"))
        // Others are.
        #expect(!none.output.contains("no profile"))
    }

    @Test("Without profiles, status says how to sign in")
    func empty() throws {
        let daemon = try FakeDaemon { _ in .json(Self.status(keyring: "locked")) }
        let outcome = try Canopyctl.run(["status"], daemon: daemon)
        #expect(outcome.exitCode == 0)
        #expect(outcome.output.contains("canopyctl login"))
        #expect(outcome.output.contains("keyring locked"))
    }

    @Test("Colour is for terminals, and NO_COLOR is honoured", arguments: [true, false])
    func colour(wanted: Bool) throws {
        let daemon = try FakeDaemon { _ in
            .json(Self.status(Self.profile("p", "active", Self.good)))
        }
        var environment = ["CANOPYD_SOCKET": daemon.socketPath, "TERM": "xterm"]
        if !wanted { environment["NO_COLOR"] = "1" }
        let terminal = try PseudoTerminal()
        let pid = try terminal.spawn([try Canopyctl.path, "status"], environment)
        try terminal.expect("p@example.com")
        #expect(terminal.shown.contains("\u{1B}[32mactive") == wanted)
        #expect(terminal.shown.contains("\u{1B}") == wanted)
        #expect(try Canopyctl.wait(pid) == 0)
    }

    // MARK: - Other commands

    @Test("profiles prints one name a line")
    func profiles() throws {
        let daemon = try FakeDaemon { _ in
            .json(
                #"{"profiles":[\#(Self.profile("a", "active")),\#(Self.profile("b", "offline"))]}"#)
        }
        #expect(try Canopyctl.run(["profiles"], daemon: daemon).output == "a\nb\n")
        let json = try Canopyctl.run(["profiles", "--json"], daemon: daemon)
        #expect(json.output.hasPrefix(#"{"profiles":["#))
        let empty = try FakeDaemon { _ in .json(#"{"profiles":[]}"#) }
        let outcome = try Canopyctl.run(["profiles"], daemon: empty)
        #expect(outcome.output.isEmpty && outcome.words.contains("canopyctl login"))
    }

    @Test("refresh says the generation, and prints no token unless asked for JSON")
    func refresh() throws {
        let daemon = try FakeDaemon { _ in
            .json(
                #"{"profile":"p","access_token":"t0ken","generation":8,"#
                    + #""expires_at":"2999-01-01T00:00:00Z"}"#)
        }
        let outcome = try Canopyctl.run(
            ["refresh", "-p", "p", "--if-generation", "7", "--timeout", "3"], daemon: daemon)
        #expect(outcome.exitCode == 0)
        #expect(outcome.output.isEmpty)
        #expect(outcome.words.contains("generation 8") && !outcome.words.contains("t0ken"))
        #expect(
            daemon.requests.first?.line
                == "POST /v1/profiles/p/refresh?timeout=3&if_generation=7 HTTP/1.1")
        #expect(try Canopyctl.run(["refresh", "--json"], daemon: daemon).output.contains("t0ken"))
    }

    @Test("logout says that issued access tokens may go on working")
    func logout() throws {
        let daemon = try FakeDaemon { _ in .reply(204, "application/json", "") }
        let outcome = try Canopyctl.run(["logout"], daemon: daemon)
        #expect(outcome.exitCode == 0)
        #expect(outcome.words.contains("until they expire"))
        let local = try Canopyctl.run(["logout", "--local", "-p", "x"], daemon: daemon)
        #expect(local.words.contains("server was not told"))
        #expect(
            daemon.requests.map(\.line) == [
                "POST /v1/profiles/default/logout HTTP/1.1",
                "POST /v1/profiles/x/logout?local=1 HTTP/1.1",
            ])
    }

    @Test("logout --all goes on after a failure, and ends with its code")
    func logoutAll() throws {
        let daemon = try FakeDaemon { request in
            if request.line.hasPrefix("GET") {
                return .json(
                    #"{"profiles":[{"profile":"a"},{"profile":"b"},{"profile":"c"}]}"#)
            }
            return request.line.contains("/a/")
                ? .problem(.serverUnreachable, #","fix":"canopyctl logout --local""#)
                : .reply(204, "application/json", "")
        }
        let outcome = try Canopyctl.run(["logout", "--all"], daemon: daemon)
        #expect(outcome.exitCode == 6)
        #expect(outcome.words.contains("try: canopyctl logout --local"))
        #expect(outcome.words.contains("profile c is signed out"))
        #expect(daemon.requests.count == 4)
    }

    @Test("whoami shows id, email and name")
    func whoami() throws {
        let daemon = try FakeDaemon { _ in
            .json(#"{"id":"i1","email":"a@b","first_name":"Ann","last_name":"Bee\u001b"}"#)
        }
        let outcome = try Canopyctl.run(["whoami"], daemon: daemon)
        #expect(outcome.output == "id     i1\nemail  a@b\nname   Ann Bee?\n")
    }

    @Test("sessions are an aligned table, with a dash for what the server does not say")
    func sessions() throws {
        let daemon = try FakeDaemon { _ in
            .json(#"{"sessions":[{"id":"long-id-1","ip_address":"::1"},{"id":"s"}]}"#)
        }
        let outcome = try Canopyctl.run(["sessions"], daemon: daemon)
        #expect(
            outcome.output == """
                ID         CREATED  EXPIRES  ADDRESS  PROGRAM
                long-id-1  –        –        ::1      –
                s          –        –        –        –

                """)
    }

    @Test("revoke escapes the id, so that no id leads to another resource")
    func revoke() throws {
        let daemon = try FakeDaemon { _ in .reply(204, "application/json", "") }
        let outcome = try Canopyctl.run(["revoke", "a/../b?c=é"], daemon: daemon)
        #expect(outcome.exitCode == 0)
        #expect(
            daemon.requests.first?.line
                == "DELETE /v1/profiles/default/sessions/a%2F..%2Fb%3Fc%3D%C3%A9 HTTP/1.1")
    }
}
