import AgentCore
import Foundation
import Glibc
import Testing

@Suite("canopyctl answers other tools in their own formats", .timeLimit(.minutes(25)))
struct HelperTests {
    /// The token object that canopyd answers with.
    static func tokenObject(_ token: String = "aaa.bbb", generation: Int = 3) -> String {
        #"{"profile":"default","access_token":"\#(token)","token_type":"Bearer","#
            + #""expires_at":"2026-04-20T09:15:00Z","expires_in":900,"#
            + #""refresh_at":"2026-04-20T09:12:00Z","generation":\#(generation),"#
            + #""identity":{"id":"id_1","email":"ada@example.org"}}"#
    }

    private func daemon() throws -> FakeDaemon {
        try FakeDaemon { _ in .json(Self.tokenObject()) }
    }

    // MARK: - git

    @Test("git gets a user name, the token as the password, and when it ends")
    func gitGet() throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            ["git-credential", "get"], daemon: daemon,
            input: "protocol=https\nhost=git.example.com\npath=a.git\nwwwauth[]=Basic\n\n")
        #expect(outcome.exitCode == 0 && outcome.words.isEmpty)
        #expect(
            outcome.output == "username=oauth2\npassword=aaa.bbb\npassword_expiry_utc=1776676500\n")
    }

    @Test("The user name that git has stays, and --username stands in for none")
    func gitUsername() throws {
        let named = try Canopyctl.run(
            ["git-credential", "get", "--username", "other"], daemon: try daemon(),
            input: "protocol=https\nhost=h\nusername=ada\n\n")
        #expect(named.output.hasPrefix("username=ada\n"))
        let option = try Canopyctl.run(
            ["git-credential", "--username", "x-token", "get"], daemon: try daemon(),
            input: "protocol=https\nhost=h\n\n")
        #expect(option.output.hasPrefix("username=x-token\n"))
    }

    @Test(
        "A token does not travel unencrypted but on this machine",
        arguments: [
            ("http", "git.example.com", false), ("http", "localhost:8080", true),
            ("http", "127.0.0.1", true), ("http", "[::1]:80", true), ("ftp", "localhost", false),
            ("http", "localhost.example.com", false), ("", "", false), ("https", "", false),
            // Names and users that look like addresses of this machine.
            ("http", "127.example.com", false), ("http", "127.0.0.1.example.com", false),
            ("http", "localhost:80@example.com", false), ("http", "[::1]@example.com", false),
            ("http", "[::1].example.com", false), ("http", "127.0.0.1:80/x@example.com", false),
        ])
    func gitUnencrypted(_ scheme: String, _ host: String, _ isSafe: Bool) throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            ["git-credential", "get"], daemon: daemon, input: "protocol=\(scheme)\nhost=\(host)\n")
        #expect((outcome.exitCode == 0) == isSafe)
        #expect(daemon.requests.isEmpty != isSafe && outcome.output.isEmpty != isSafe)
    }

    @Test("git's store and erase change nothing, and tell nobody", arguments: ["store", "erase"])
    func gitStores(_ action: String) throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            ["git-credential", action], daemon: daemon,
            input: "protocol=https\nhost=h\nusername=u\npassword=hunter2\n")
        #expect(outcome.exitCode == 0 && outcome.output.isEmpty && outcome.words.isEmpty)
        #expect(daemon.requests.isEmpty)
    }

    // MARK: - Kubernetes

    @Test("kubectl gets an ExecCredential that it asks anew for at our refresh point")
    func kube() throws {
        let outcome = try Canopyctl.run(["kube-credential"], daemon: try daemon())
        #expect(
            outcome.output
                == #"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","#
                + #""status":{"expirationTimestamp":"2026-04-20T09:12:00Z","token":"aaa.bbb"}}"#
                + "\n")
    }

    @Test("The version that the client asks for is the one that it gets, or an error")
    func kubeVersions() throws {
        let beta = try Canopyctl.run(
            ["kube-credential"], daemon: try daemon(),
            environment: [
                "KUBERNETES_EXEC_INFO":
                    #"{"apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}}"#
            ])
        #expect(beta.output.contains(#""apiVersion":"client.authentication.k8s.io/v1beta1""#))
        for info in [#"{"apiVersion":"v7"}"#, "{}", "no JSON"] {
            let daemon = try daemon()
            let outcome = try Canopyctl.run(
                ["kube-credential"], daemon: daemon,
                environment: ["KUBERNETES_EXEC_INFO": info])
            #expect(outcome.exitCode == 1 && outcome.output.isEmpty && daemon.requests.isEmpty)
            #expect(outcome.words.contains("client.authentication.k8s.io/v1"))
        }
    }

    @Test(
        "kubectl that says which cluster it means gets no token for one in the clear",
        arguments: [
            ("https://k8s.example.com:6443", true), ("http://127.0.0.1:8001", true),
            ("http://k8s.example.com", false), ("HTTP://10.0.0.1:8080", false),
        ])
    func kubeUnencrypted(_ server: String, _ isSafe: Bool) throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            ["kube-credential"], daemon: daemon,
            environment: [
                "KUBERNETES_EXEC_INFO":
                    #"{"apiVersion":"client.authentication.k8s.io/v1","spec":{"#
                    + #""cluster":{"server":"\#(server)"},"interactive":false}}"#
            ])
        #expect((outcome.exitCode == 0) == isSafe)
        #expect(daemon.requests.isEmpty != isSafe && outcome.output.isEmpty != isSafe)
        #expect(outcome.words.contains("unencrypted") != isSafe)
    }

    // MARK: - docker

    @Test("docker gets the server that it named, a user name and the token")
    func dockerGet() throws {
        let outcome = try Canopyctl.run(
            ["docker-credential", "get"], daemon: try daemon(),
            input: "registry.example.com/\"x\"\n")
        #expect(
            outcome.output
                == #"{"ServerURL":"registry.example.com/\"x\"","Username":"oauth2","Secret":"aaa.bbb"}"#
                + "\n")
    }

    @Test(
        "docker gets no token for an address where it would travel unencrypted, and reads why",
        arguments: [
            ("https://index.docker.io/v1/", true), ("HTTPS://registry.example.com", true),
            ("registry.example.com:5000", true), ("http://localhost:5000/v2/", true),
            ("http://127.1.2.3:5000", true), ("http://[::1]:5000/v2/?n=1", true),
            ("http://registry.example.com", false), ("HTTP://registry.example.com/v1/", false),
            ("http://127.0.0.1.example.com", false), ("http://localhost@example.com", false),
            ("http://user@localhost", false), ("ftp://localhost", false), ("://", false),
        ])
    func dockerUnencrypted(_ server: String, _ isSafe: Bool) throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            ["docker-credential", "get"], daemon: daemon, input: server)
        #expect((outcome.exitCode == 0) == isSafe && outcome.output.contains("aaa.bbb") == isSafe)
        #expect(daemon.requests.isEmpty != isSafe)
        // docker's tools show what is on standard output.
        #expect(
            isSafe
                || outcome.output
                    == "no token is given for \(server), where it would travel unencrypted; use an "
                    + "https:// URL\n"
        )
    }

    @Test("Who names no registry gets no token", arguments: ["", "\n"])
    func dockerNowhere(_ input: String) throws {
        let daemon = try daemon()
        let outcome = try Canopyctl.run(
            ["docker-credential", "get"], daemon: daemon, input: input)
        #expect(outcome.exitCode == 1 && daemon.requests.isEmpty)
        #expect(outcome.output.contains("no registry's name"))
    }

    @Test("docker's other wishes store nothing and reveal nothing")
    func dockerOthers() throws {
        let daemon = try daemon()
        let list = try Canopyctl.run(["docker-credential", "list"], daemon: daemon)
        #expect(list.exitCode == 0 && list.output == "{}\n")
        let erase = try Canopyctl.run(
            ["docker-credential", "erase"], daemon: daemon, input: "registry.example.com")
        #expect(erase.exitCode == 0 && erase.output.isEmpty)
        let store = try Canopyctl.run(
            ["docker-credential", "store"], daemon: daemon,
            input: #"{"ServerURL":"s","Username":"u","Secret":"hunter2"}"#)
        #expect(store.exitCode == 1 && !store.output.contains("hunter2"))
        // The tools show what is on standard output.
        #expect(store.output.contains("stores no other credential"))
        #expect(daemon.requests.isEmpty)
    }

    @Test("A program named as docker or git look for it is canopyctl in that role")
    func programNames() throws {
        let daemon = try daemon()
        let directory = daemon.directory
        for (name, input, expected) in [
            ("docker-credential-canopy", "s", #""Secret":"aaa.bbb""#),
            ("git-credential-canopy", "protocol=https\nhost=h\n", "password=aaa.bbb\n"),
        ] {
            try FileManager.default.createSymbolicLink(
                atPath: "\(directory)/\(name)", withDestinationPath: try Canopyctl.path)
            let outcome = try Canopyctl.run(
                ["get"], daemon: daemon, input: input, program: "\(directory)/\(name)")
            #expect(outcome.exitCode == 0 && outcome.output.contains(expected))
        }
    }

    @Test(
        "A tool is told in canopyd's words why there is no token",
        arguments: ["git-credential", "docker-credential", "kube-credential"])
    func noToken(_ helper: String) throws {
        let daemon = try FakeDaemon { _ in .problem(.signInRequired, #","reason":"signed_out""#) }
        let outcome = try Canopyctl.run(
            helper == "kube-credential" ? [helper] : [helper, "get"], daemon: daemon,
            input: "protocol=https\nhost=h\n")
        #expect(outcome.exitCode == 4 && outcome.words.contains("canopyctl login"))
        // docker's tools show what is on standard output, and some nothing else.
        #expect(outcome.output.contains("canopyctl login") == (helper == "docker-credential"))
        #expect(outcome.output.isEmpty == (helper != "docker-credential"))
    }

    @Test("A request for a credential that has no end is refused")
    func endlessInput() throws {
        let outcome = try Canopyctl.run(
            ["git-credential", "get"], daemon: try daemon(),
            input: String(repeating: "x", count: 70_000))
        #expect(outcome.exitCode == 1 && outcome.words.contains("65536"))
    }

    // MARK: - curl

    @Test("curl gets the header in a file, its own arguments as they are, and no token among them")
    func curl() throws {
        let daemon = try daemon()
        let fake = daemon.directory + "/curl"
        let script = #"""
            #!/bin/sh
            [ "$1 $3 $5 $6" = "--header --proto --proto-default https" ] && cat "${2#@}"
            protocols=$4
            shift 6
            printf '<%s>' "$protocols" "$@"
            exit 22
            """#
        // Written by another process: while a test beside this one starts a program, that has for a
        // moment whatever we have open, and a file that is open for writing cannot be run.
        let written = try Canopyctl.run(
            ["-c", "cat >'\(fake)' && chmod 755 '\(fake)'"],
            environment: ["PATH": "/usr/bin:/bin"], input: script, program: "/bin/sh")
        #expect(written.exitCode == 0)
        let outcome = try Canopyctl.run(
            ["curl", "--", "-d", "a b", "--fail", "http://localhost/"], daemon: daemon,
            environment: ["PATH": daemon.directory + ":/usr/bin:/bin"])
        #expect(outcome.exitCode == 22, "\(outcome.words)")
        #expect(
            outcome.output
                == "Authorization: Bearer aaa.bbb\n<=https,http><-d><a b><--fail><http://localhost/>"
        )
        let missing = try Canopyctl.run(
            ["curl", "--", "x"], daemon: daemon, environment: ["PATH": "/nowhere"])
        #expect(missing.exitCode == 1 && missing.words.contains("install"))
    }

    @Test(
        "curl sends the token in the clear to this machine alone, or where it is told to",
        arguments: [
            (["http://example.com/"], 1), (["HTTP://127.0.0.1.example.com/"], 1),
            (["http://localhost:1@example.com/"], 1),
            (["http://127.0.0.1:1/", "http://example.com/"], 1), (["http://127.0.0.1:1/"], 7),
            (["http://[::1]:1/x?y=z"], 7), (["example.com"], 7), (["https://example.com/"], 7),
            (["--unix-socket", "/nowhere", "http://example.com/"], 7),
            (["--proto", "=http", "http://example.com/"], 7),
        ] as [([String], Int32)])
    func curlUnencrypted(_ arguments: [String], _ exitCode: Int32) throws {
        // Wherever it is sent to, nobody listens there: curl's 7. A protocol that it may not speak is 1.
        let outcome = try Canopyctl.run(
            [
                "curl", "--", "-sS", "--connect-to", "::127.0.0.1:1", "--noproxy", "*",
                "--write-out", "<%{url_effective}>",
            ] + arguments,
            daemon: try daemon(), environment: ["PATH": "/usr/bin:/bin"])
        #expect(outcome.exitCode == exitCode, "\(outcome.words)")
        // Without a scheme it would be http.
        #expect(arguments != ["example.com"] || outcome.output == "<https://example.com/>")
    }
}
