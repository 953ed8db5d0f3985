import Foundation
import Glibc
import Testing

@Suite("The access policy, kept by canopyd", .timeLimit(.minutes(25)))
struct PolicyTests {
    private static let reread = "The configuration was read again"
    private static let refusal = "The access policy refuses a program"

    /// A stage on which two programs ask, copies of canopyctl: they differ in their files alone.
    private final class Two {
        let stage: Stage
        let one: String
        let two: String

        init(lifetime: Int = 900) throws {
            stage = try Stage(lifetime: lifetime)
            let directory = stage.desktop.directory.path
            one = directory + "/one"
            two = directory + "/two"
            let built = URL(fileURLWithPath: try CanopydProgram.path).deletingLastPathComponent()
                .appendingPathComponent("canopyctl").path
            for path in [one, two] { try PolicyTests.copy(built, to: path) }
        }

        func run(
            _ path: String, _ arguments: String..., under wrapper: [String] = []
        ) throws -> (status: Int32, output: String) {
            let program = try Program(
                path, arguments,
                environment: [
                    "CANOPYD_SOCKET": stage.daemon.socketPath,
                    "HOME": stage.desktop.directory.path,
                ], under: wrapper)
            return (try program.end(), program.output)
        }
    }

    /// In a process of its own: what another test starts meanwhile would inherit the descriptor, and
    /// nobody runs a program that is being written.
    private static func copy(_ path: String, to copy: String) throws {
        try #require(try Program("/bin/cp", [path, copy], environment: [:]).end() == 0)
    }

    /// Writes the policy, and has canopyd read it.
    private static func set(_ policy: String, of stage: Stage) throws {
        let before = stage.daemon.words.components(separatedBy: reread).count
        try stage.desktop.directory.write(policy, "conf/canopyd/canopyd.conf")
        kill(stage.daemon.pid, SIGHUP)
        try eventually("the policy is read") {
            stage.daemon.words.components(separatedBy: reread).count > before
        }
    }

    private static func lines(_ event: String, of stage: Stage) -> [Substring] {
        stage.daemon.words.split(separator: "\n").filter { $0.contains(event) }
    }

    // MARK: Programs

    @Test("Of two programs the one that is named has its token, and the other is told what to do")
    func twoPrograms() throws {
        let two = try Two()
        try two.stage.logIn()
        try Self.set("[policy default]\nAllowExecutable=\(two.one)\n", of: two.stage)
        let allowed = try two.run(two.one, "token")
        #expect(allowed.status == 0)
        let token = try #require(allowed.output.split(separator: "\n").first)
        let refused = try two.run(two.two, "token")
        #expect(refused.status == 7)
        #expect(refused.output.contains(two.two))
        #expect(refused.output.contains("AllowExecutable=\(two.two)"))
        #expect(!refused.output.contains(token))
        let line = try #require(Self.lines(Self.refusal, of: two.stage).last)
        #expect(line.contains("profile=default"))
        #expect(line.contains("executable=\(two.two)"))
        #expect(line.contains("uid=\(getuid())"))
        #expect(line.contains("reason=[policy default] of canopyd.conf does not name it"))
        #expect(!two.stage.daemon.words.contains(token))
        // The other profiles are everybody's.
        try two.stage.logIn("work", as: .grace)
        #expect(try two.run(two.two, "token", "--profile", "work").status == 0)
    }

    @Test("The command in a refusal, typed as it is, lets the program in")
    func fix() throws {
        let two = try Two()
        try two.stage.logIn()
        try Self.set("[policy default]\nAllowExecutable=\(two.one)", of: two.stage)
        let asking = try Program(
            "/usr/bin/python3",
            [
                "-c",
                """
                import http.client, json, os, socket, subprocess, sys
                class Connection(http.client.HTTPConnection):
                    def connect(self):
                        self.sock = socket.socket(socket.AF_UNIX)
                        self.sock.connect(sys.argv[1])
                connection = Connection("canopyd")
                connection.request("GET", "/v1/token")
                answer = connection.getresponse()
                problem = json.load(answer)
                assert (answer.status, problem["code"]) == (403, "forbidden"), problem
                subprocess.run(problem["fix"], shell=True, check=True)
                while True:
                    connection.request("GET", "/v1/token")
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200: break
                    assert answer.status == 403
                """, two.stage.daemon.socketPath,
            ], environment: ["PATH": "/usr/bin:/bin"])
        #expect(try asking.end() == 0, "\(asking.output)")
        // What stood there still does.
        #expect(try two.run(two.one, "token").status == 0)
        #expect(try two.run(two.two, "token").status == 7)
    }

    @Test("A link in the configuration means the program that it leads to, from now on another")
    func link() throws {
        let two = try Two()
        try two.stage.logIn()
        let link = two.stage.desktop.directory.path + "/link"
        try #require(symlink(two.one, link) == 0)
        try Self.set("[policy default]\nAllowExecutable=\(link)\n", of: two.stage)
        #expect(try two.run(two.one, "token").status == 0)
        #expect(try two.run(two.two, "token").status == 7)
        try #require(symlink(two.two, link + "-new") == 0)
        try #require(rename(link + "-new", link) == 0)
        #expect(try two.run(two.one, "token").status == 7)
        #expect(try two.run(two.two, "token").status == 0)
    }

    @Test("A program that was replaced since it was started is another one")
    func replaced() throws {
        let stage = try Stage()
        try stage.logIn()
        let python = stage.desktop.directory.path + "/python"
        let real = URL(fileURLWithPath: "/usr/bin/python3").resolvingSymlinksInPath().path
        try Self.copy(real, to: python)
        try Self.set("[policy default]\nAllowExecutable=\(python)\n", of: stage)
        let program = try Program(
            python,
            [
                "-c",
                """
                import os, shutil, socket, sys
                def ask():
                    client = socket.socket(socket.AF_UNIX)
                    client.connect(sys.argv[1])
                    client.sendall(b"GET /v1/token HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n")
                    answer = client.makefile().read()
                    print(answer.split()[1], "removed or replaced" in answer)
                ask()
                shutil.copy(sys.argv[2], sys.argv[2] + "-new")
                os.rename(sys.argv[2] + "-new", sys.argv[2])
                ask()
                """, stage.daemon.socketPath, python,
            ], environment: ["PYTHONHOME": "/usr"])
        #expect(try program.end() == 0, "\(program.output)")
        #expect(program.output == "200 False\n403 True\n")
        #expect(
            Self.lines(Self.refusal, of: stage).last?.contains(
                "executable=\(python) (removed or replaced since it was started)") == true)
    }

    @Test(
        "Another file under the allowed path, in a mount namespace, is another program",
        .enabled(if: getuid() == 0, "only root can mount"))
    func forged() throws {
        let two = try Two()
        try two.stage.logIn()
        try Self.set("[policy default]\nAllowExecutable=\(two.one)\n", of: two.stage)
        let mounting = [
            "/usr/bin/unshare", "--mount", "/bin/sh", "-c",
            "mount --bind '\(two.two)' '\(two.one)' && exec \"$0\" \"$@\"",
        ]
        let forged = try two.run(two.one, "token", under: mounting)
        #expect(forged.status == 7, "\(forged.output)")
        #expect(forged.output.contains("\(two.one) (of another mount namespace)"))
        // The same file is the same program there as well.
        let same = try two.run(two.one, "token", under: Array(mounting.prefix(2)))
        #expect(same.status == 0, "\(same.output)")
    }

    // MARK: Processes

    /// Connects, and leaves the connection to a child that asks once its parent is gone.
    private static let orphan = """
        import os, socket, sys, time
        client = socket.socket(socket.AF_UNIX)
        client.connect(sys.argv[1])
        parent = os.getpid()
        if os.fork(): os._exit(0)
        while os.path.exists(f"/proc/{parent}"): time.sleep(0.01)
        client.sendall(b"GET /v1/token HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n")
        print(client.makefile().read(), "end", flush=True)
        """

    @Test("Whoever has ended is nobody that a rule names, whoever holds its connection")
    func ended() throws {
        let stage = try Stage()
        try stage.logIn()
        let python = URL(fileURLWithPath: "/usr/bin/python3").resolvingSymlinksInPath().path
        for (policy, status) in [
            ("", "200"), ("[policy default]\nAllowExecutable=\(python)\n", "403"),
            ("[policy default]\nAllowUnit=a.service\n", "403"),
        ] {
            try Self.set(policy, of: stage)
            let program = try Program(
                python, ["-c", Self.orphan, stage.daemon.socketPath], environment: [:])
            #expect(try program.end() == 0)
            try eventually("the child is answered") { program.output.contains("end\n") }
            #expect(program.output.hasPrefix("HTTP/1.1 \(status) "), "\(policy)")
            #expect(
                program.output.contains("the process that connected has ended")
                    == (status == "403"))
        }
    }

    /// Has one process connect and end, and another, an allowed one, take its number; then asks on
    /// the connection.
    private static let successor = """
        import os, signal, socket, sys, time
        client = socket.socket(socket.AF_UNIX)
        first = os.fork()
        if not first:
            client.connect(sys.argv[1])
            os._exit(0)
        # Connected and let in: states are everybody's to ask.
        os.waitpid(first, 0)
        client.sendall(b"GET /v1/status HTTP/1.1\\r\\n\\r\\n")
        client.recv(65536)
        # A start is told to 10 ms.
        time.sleep(0.05)
        for turn in range(10000):
            with open("/proc/sys/kernel/ns_last_pid", "w") as last: last.write(str(first - 1))
            second = os.fork()
            if not second:
                if os.getpid() == first: os.execv(sys.argv[2], [sys.argv[2], "60"])
                os._exit(0)
            if second == first: break
            os.waitpid(second, 0)
        else: sys.exit("nobody got the number")
        while os.readlink(f"/proc/{second}/exe") != sys.argv[2]: time.sleep(0.01)
        client.sendall(b"GET /v1/token HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n")
        print(client.makefile().read())
        os.kill(second, signal.SIGKILL)
        """

    /// The program that these tests run in.
    private static var itself: String {
        get throws {
            try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        }
    }

    private static var isRootOfNumbers: Bool {
        getuid() == 0 && access("/proc/sys/kernel/ns_last_pid", W_OK) == 0
    }

    @Test(
        "A number that an allowed program has by now is not the one that connected",
        .enabled(if: isRootOfNumbers, "only root can choose a process's number"),
        arguments: [true, false])
    func numberUsedAgain(kernelNamesPeers: Bool) throws {
        let directory = try TestDirectory()
        let sleep = directory.path + "/sleep"
        try Self.copy("/bin/sleep", to: sleep)
        try directory.write(
            "[policy default]\nAllowExecutable=\(sleep)\nAllowExecutable=\(try Self.itself)\n",
            "conf/canopyd/canopyd.conf")
        // Linux before 6.5 does not know SO_PEERPIDFD, the second question about each client.
        let older = [
            "/usr/bin/strace", "-D", "-qq", "-e", "signal=none", "-e", "trace=getsockopt", "-e",
            "inject=getsockopt:error=ENOPROTOOPT:when=2+2", "-o", directory.path + "/calls",
        ]
        let daemon = try RunningDaemon(in: directory, under: kernelNamesPeers ? [] : older)
        // Who is named and still there is let in, to be told that nobody is signed in.
        let honest = try daemon.connect()
        try honest.send(Stage.request("GET", "/v1/token"))
        #expect(try honest.answer().status != 403)
        let program = try Program(
            "/usr/bin/python3", ["-c", Self.successor, daemon.socketPath, sleep], environment: [:])
        #expect(try program.end() == 0, "\(program.output)")
        #expect(program.output.hasPrefix("HTTP/1.1 403 "), "\(program.output)")
        #expect(program.output.contains("the process that connected has ended"))
        #expect(
            program.output.contains("and another has its number") == !kernelNamesPeers)
    }

    @Test(
        "A process outside of canopyd's container has no number, and no rule names it",
        .enabled(if: getuid() == 0, "only root can make a pid namespace"))
    func outside() throws {
        let daemon = try RunningDaemon(
            configuration: "[policy default]\nAllowExecutable=/proc/self/exe\n",
            under: ["/usr/bin/unshare", "--pid", "--fork", "--kill-child"])
        let client = try daemon.connect()
        try client.send(Stage.request("GET", "/v1/token"))
        let answer = try client.answer()
        #expect(answer.status == 403)
        #expect(answer.body.contains("outside the container"))
        #expect(daemon.words.contains("\(Self.refusal): profile=default, pid=0, uid=0"))
    }

    @Test(
        "In a user namespace, as PrivateUsers= makes one, canopyd says that it cannot see programs",
        .enabled(if: getuid() == 0, "only root can do so where others may not"))
    func userNamespace() throws {
        let daemon = try RunningDaemon(
            configuration: "[policy default]\nAllowExecutable=/usr/bin/env\n",
            under: ["/usr/bin/unshare", "--user", "--map-root-user"])
        #expect(daemon.words.contains("AllowExecutable= lets nobody in: canopyd runs in a user"))
        let client = try daemon.connect()
        try client.send(Stage.request("GET", "/v1/token"))
        let answer = try client.answer()
        #expect(answer.status == 403)
        #expect(answer.body.contains("its executable cannot be seen"))
        #expect(answer.body.contains("a program that calls itself"))
    }

    // MARK: What it covers

    @Test("What uses or replaces the session is refused, and states are everybody's to see")
    func routes() throws {
        let stage = try Stage()
        try stage.logIn()
        let events = try stage.daemon.connect()
        try Self.set("[policy default]\nAllowUnit=a.service\n", of: stage)
        for (method, path) in [
            ("GET", "/v1/token"), ("HEAD", "/v1/token"), ("POST", "/v1/profiles/default/refresh"),
            ("GET", "/v1/profiles/default/identity"), ("GET", "/v1/profiles/default/sessions"),
            ("DELETE", "/v1/profiles/default/sessions/x"),
            ("POST", "/v1/profiles/default/logout"),
            ("POST", "/v1/profiles/default/logout?local=1"),
        ] {
            let client = try stage.daemon.connect()
            try client.send(Stage.request(method, path))
            let answer = try client.answer(hasBody: method != "HEAD")
            #expect(answer.status == 403, "\(method) \(path)")
            #expect(method == "HEAD" || answer.body.contains(#""code":"forbidden""#))
        }
        #expect(try stage.tryLogin("default", as: .ada).status == 403)
        #expect(
            try stage.ask("POST", "/v1/profiles/default/mfa", #"{"challenge":"x"}"#).status == 403)
        for path in ["/v1/status", "/v1/profiles", "/v1/profiles/default", "/v1/metrics"] {
            let client = try stage.daemon.connect()
            try client.send(Stage.request("GET", path))
            #expect(try client.answer().status == 200, "\(path)")
        }
        try events.send(Stage.request("GET", "/v1/events"))
        #expect(try events.answer(hasBody: false).status == 200)
        _ = try events.events(until: #""state":"active""#)
        // Nobody's session is replaced where there is none.
        try stage.logIn("default-2", as: .grace)
        try Self.set("[policy fresh]\nAllowUnit=a.service\n", of: stage)
        #expect(try stage.tryLogin("fresh", as: .ada).status == 200)
        #expect(try stage.tryLogin("fresh", as: .ada).status == 403)
        #expect(try stage.token("fresh").status == 403)
    }

    @Test("A sign-in that waits while somebody else signs in does not take the new session's place")
    func lateSignIn() throws {
        let two = try Two()
        let stage = two.stage
        try Self.set("[policy default]\nAllowExecutable=\(two.one)\n", of: stage)
        try stage.server.plan("hold", #","on":"login""#)
        let person = SandboxServer.Person.ada
        let allowed = try Program(
            two.one,
            [
                "login", "--url", stage.server.url, "--key", stage.server.nativeKey, "--email",
                person.email, "--password-stdin",
            ],
            environment: [
                "CANOPYD_SOCKET": stage.daemon.socketPath, "HOME": stage.desktop.directory.path,
            ], input: person.password + "\n")
        try eventually("the sign-in is with the server") { try stage.server.held() == 1 }
        let other = try stage.daemon.connect()
        try other.send(
            Stage.request("POST", "/v1/profiles/default/login", stage.credentials(.grace)))
        for _ in 0..<3 { _ = try stage.ask("GET", "/v1/status") }
        try stage.server.release()
        #expect(try allowed.end() == 0, "\(allowed.output)")
        #expect(try other.answer().status == 403)
        #expect(try stage.profile().object("identity").text("email") == person.email)
    }

    @Test("A configuration that leads nowhere, or that is a FIFO, takes no policy back")
    func lostConfiguration() throws {
        let stage = try Stage()
        try stage.logIn()
        try Self.set("[policy default]\nAllowUnit=a.service\n", of: stage)
        let path = stage.desktop.directory.path + "/conf/canopyd/canopyd.conf"
        let directory = stage.desktop.directory.path + "/conf/canopyd"
        let bad = "The configuration is bad"
        func expectKept(_ what: String) throws {
            let before = stage.daemon.words.components(separatedBy: bad).count
            kill(stage.daemon.pid, SIGHUP)
            try eventually("\(what) is refused") {
                stage.daemon.words.components(separatedBy: bad).count > before
            }
            #expect(try stage.token().status == 403, "\(what)")
        }
        try #require(unlink(path) == 0 && symlink("nowhere", path) == 0)
        try expectKept("a link that leads nowhere")
        try #require(unlink(path) == 0 && mkfifo(path, 0o600) == 0)
        try expectKept("a FIFO")
        try #require(unlink(path) == 0 && rmdir(directory) == 0)
        try #require(symlink("nowhere", directory) == 0)
        try expectKept("a directory that leads nowhere")
        // A file that is not there is none, as it always was.
        try #require(unlink(directory) == 0)
        kill(stage.daemon.pid, SIGHUP)
        try eventually("everybody is let in") { try stage.token().status == 200 }
    }

    @Test("A section without a rule keeps everybody out")
    func emptySection() throws {
        let stage = try Stage()
        try stage.logIn()
        try Self.set("[policy default]\n", of: stage)
        let answer = try stage.token()
        #expect(answer.status == 403)
        #expect(try answer.json.text("detail").contains("has no rule"))
        #expect(stage.daemon.words.contains("[policy default] names no program"))
    }

    @Test("A policy counts from its reading on: for open connections, and for whoever waits")
    func reload() throws {
        let stage = try Stage()
        try stage.logIn()
        let kept = try stage.daemon.connect()
        func ask() throws -> Int {
            try kept.send(Stage.request("GET", "/v1/token"))
            return try kept.answer().status
        }
        // The later ones are answered from memory.
        for _ in 0..<5 { #expect(try ask() == 200) }
        try Self.set("[policy default]\nAllowUnit=a.service\n", of: stage)
        for _ in 0..<3 { #expect(try ask() == 403) }
        try Self.set("", of: stage)
        for _ in 0..<3 { #expect(try ask() == 200) }

        try stage.server.plan("hold", #","on":"refresh""#)
        let waiting = try stage.daemon.connect()
        try waiting.send(Stage.request("POST", "/v1/profiles/default/refresh"))
        try eventually("the rotation is with the server") { try stage.server.held() == 1 }
        try Self.set("[policy default]\nAllowUnit=a.service\n", of: stage)
        let answer = try waiting.answer()
        #expect(answer.status == 403)
        #expect(answer.body.contains("forbidden"))
        try stage.server.release()
        // The rotation itself went on.
        try eventually("the next generation") { try stage.generation() == 1 }
        #expect(try stage.token().status == 403)
    }

    // MARK: The audit

    @Test("The journal tells of a program's first token of each generation, and of no other")
    func audit() throws {
        let two = try Two()
        let granted = "A program has its first token of this generation"
        func told(_ path: String) -> [Substring] {
            Self.lines(granted, of: two.stage).filter { $0.contains("executable=\(path),") }
        }
        try two.stage.logIn()
        for _ in 0..<3 {
            #expect(try two.run(two.one, "token").status == 0)
            #expect(try two.run(two.two, "token").status == 0)
        }
        #expect(told(two.one).count == 1)
        #expect(told(two.two).count == 1)
        let line = try #require(told(two.one).first)
        #expect(line.contains("profile=default"))
        #expect(line.contains("generation=0"))
        #expect(line.contains("uid=\(getuid())"))
        #expect(line.contains("pid="))
        // One that waits for the rotation is told of with the generation that it gets.
        try eventually("the floor between two rotations is over") {
            try two.run(two.one, "refresh").status == 0 && two.stage.generation() == 1
        }
        #expect(told(two.one).count == 2)
        #expect(told(two.one).last?.contains("generation=1") == true)
        let client = try two.stage.daemon.connect()
        let before = Self.lines(granted, of: two.stage).count
        for _ in 0..<5 {
            try client.send(Stage.request("GET", "/v1/token"))
            #expect(try client.answer().status == 200)
        }
        #expect(Self.lines(granted, of: two.stage).count == before + 1)
        let token = try two.stage.goodToken().text("access_token")
        #expect(!two.stage.daemon.words.contains(token))
    }

    @Test("What a policy names that is no program is told when the file is checked")
    func checked() throws {
        let directory = try TestDirectory()
        try directory.write("#!/bin/sh\n", "script")
        chmod(directory.path + "/script", 0o755)
        try directory.write("text", "text")
        try directory.write(
            """
            [policy default]
            AllowExecutable=/usr/bin/env
            AllowExecutable=\(directory.path)/none
            AllowExecutable=\(directory.path)/script
            AllowExecutable=\(directory.path)/text
            AllowExecutable=\(directory.path)
            """, "conf/canopyd/canopyd.conf")
        let outcome = try CanopydProgram.run(["--check-config"], in: directory)
        #expect(outcome.exitCode == 0)
        #expect(outcome.words.contains("/none: there is no such program"))
        #expect(outcome.words.contains("/script: this is a script"))
        #expect(outcome.words.contains("/text: this is no program"))
        #expect(outcome.words.contains("AllowExecutable=\(directory.path): this is no program"))
        #expect(!outcome.words.contains("/usr/bin/env"))
    }
}
