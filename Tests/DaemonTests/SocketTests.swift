import CLinux
import Foundation
import Glibc
import Testing

@Suite("One canopyd claims a path, and gives it up", .timeLimit(.minutes(25)))
struct SocketPathTests {
    @Test("The socket and its directory are the user's alone")
    func modes() throws {
        let daemon = try RunningDaemon()
        let socket = try daemon.directory.status(daemon.socketPath)
        #expect(socket.st_mode & 0o7777 == 0o600)
        #expect(socket.st_mode & S_IFMT == S_IFSOCK)
        let directory = try daemon.directory.status(daemon.directory.path + "/canopyd")
        #expect(directory.st_mode & 0o7777 == 0o700)
    }

    @Test("A second canopyd says that one is running, and the first serves on")
    func alreadyRunning() throws {
        let daemon = try RunningDaemon()
        let before = try daemon.directory.status(daemon.socketPath).st_ino
        let second = try CanopydProgram.run(in: daemon.directory)
        #expect(second.exitCode == 1)
        #expect(second.words.contains("already running"))
        #expect(try daemon.directory.status(daemon.socketPath).st_ino == before)
        let client = try daemon.connect()
        try client.send("GET /v1/status HTTP/1.1\r\n\r\n")
        #expect(try client.answer().status == 200)
    }

    @Test(
        "A runtime directory has one canopyd, wherever the second would listen",
        arguments: [true, false])
    func oneForDirectory(activated: Bool) throws {
        let directory = try TestDirectory()
        let listener = try UnixSocket.make(SOCK_STREAM)
        defer { close(listener) }
        let path = directory.path + "/managers.sock"
        try #require(UnixSocket.call(bind, listener, path) == 0)
        try #require(listen(listener, 8) == 0)
        let daemon =
            try activated
            ? RunningDaemon(
                in: directory, socketPath: path, listeners: [("agent", listener)])
            : RunningDaemon(in: directory)
        let elsewhere = directory.path + "/elsewhere.sock"
        let second = try CanopydProgram.run(["--socket", elsewhere], in: directory)
        #expect(second.exitCode == 1)
        #expect(second.words.contains("already running"))
        #expect(access(elsewhere, F_OK) != 0)
        try daemon.connect().expectService()
        #expect(try daemon.end(by: SIGKILL) == 128 + SIGKILL)
        let next = try RunningDaemon(
            in: directory, socketPath: elsewhere, arguments: ["--socket", elsewhere])
        try next.connect().expectService()
    }

    @Test("A runtime directory that others can see into is closed to them")
    func visibleDirectory() throws {
        let directory = try TestDirectory()
        let path = directory.path + "/canopyd"
        try #require(mkdir(path, 0o755) == 0)
        chmod(path, 0o755)
        let daemon = try RunningDaemon(in: directory)
        try daemon.connect().expectService()
        #expect(try directory.status(path).st_mode & 0o7777 == 0o700)
    }

    @Test("Where no runtime directory can be, a path elsewhere does")
    func noDirectory() throws {
        let directory = try TestDirectory()
        let elsewhere = directory.path + "/elsewhere.sock"
        try directory.write("", "file/canopyd")
        try directory.write("", "loop/other")
        try #require(symlink("canopyd", directory.path + "/loop/canopyd") == 0)
        for name in ["missing", "file", "loop", String(repeating: "n", count: 300)] {
            let daemon = try RunningDaemon(
                in: directory, socketPath: elsewhere, arguments: ["--socket", elsewhere],
                environment: ["XDG_RUNTIME_DIR": directory.path + "/" + name])
            try daemon.connect().expectService()
            #expect(try daemon.end(by: SIGTERM) == 0)
        }
    }

    @Test("Another user's runtime directory is neither made nor held", .enabled(if: getuid() == 0))
    func foreignDirectory() throws {
        let directory = try TestDirectory()
        let theirs = directory.path + "/theirs"
        let elsewhere = directory.path + "/elsewhere.sock"
        try #require(mkdir(theirs, 0o700) == 0 && chown(theirs, 4242, 4242) == 0)
        for isThere in [false, true] {
            if isThere {
                let path = theirs + "/canopyd"
                try #require(mkdir(path, 0o755) == 0 && chown(path, 4242, 4242) == 0)
                chmod(path, 0o755)
            }
            let daemon = try RunningDaemon(
                in: directory, socketPath: elsewhere, arguments: ["--socket", elsewhere],
                environment: ["XDG_RUNTIME_DIR": theirs])
            try daemon.connect().expectService()
            #expect((access(theirs + "/canopyd", F_OK) == 0) == isThere)
            guard isThere else { continue }
            #expect(try directory.status(theirs + "/canopyd").st_mode & 0o7777 == 0o755)
            let file = open(theirs + "/canopyd", O_RDONLY | O_CLOEXEC)
            defer { close(file) }
            #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
        }
    }

    @Test("What a killed canopyd left behind is taken over")
    func stale() throws {
        let directory = try TestDirectory()
        let killed = try RunningDaemon(in: directory)
        #expect(try killed.end(by: SIGKILL) == 128 + SIGKILL)
        _ = try directory.status(directory.socketPath)
        let next = try RunningDaemon(in: directory)
        let client = try next.connect()
        try client.send("GET /v1/profiles HTTP/1.1\r\n\r\n")
        #expect(try client.answer().body == #"{"profiles":[]}"#)
    }

    @Test(
        "What canopyd is about to start holds nothing of it",
        .disabled(if: Sanitizer.isOn))
    func starting() throws {
        let directory = try TestDirectory()
        let canopyd = try CanopydProgram.path
        // The exchange's process is there, and waits on the threshold of being the exchange.
        let tracer = try Program(
            "/usr/bin/strace",
            [
                "-f", "-qq", "-o", "/dev/null", "-P", canopyd + "-exchange", "-e", "trace=execve",
                "-e", "inject=execve:delay_enter=60000000", canopyd,
            ],
            environment: [
                "HOME": directory.path, "XDG_RUNTIME_DIR": directory.path,
                "XDG_STATE_HOME": directory.path + "/state",
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(directory.path)/no-bus",
            ])
        func children(of process: pid_t) -> [pid_t] {
            let path = "/proc/\(process)/task/\(process)/children"
            let text = try? String(contentsOfFile: path, encoding: .utf8)
            return (text ?? "").split(separator: " ").compactMap { pid_t($0) }
        }
        var starting: pid_t?
        try eventually("the exchange's process is there") {
            for process in children(of: tracer.pid) {
                starting = children(of: process).first
            }
            return starting != nil
        }
        let exchange = try #require(starting)
        defer { kill(exchange, SIGKILL) }
        try eventually("it is told to become the exchange") {
            // The number of execve(2), in which it is held up.
            try String(contentsOfFile: "/proc/\(exchange)/syscall", encoding: .utf8)
                .hasPrefix("\(SYS_execve) ")
        }
        // Its locks and its socket would be held for as long as this takes, were it killed now.
        let held = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(exchange)/fd")
        #expect(held.sorted() == ["0", "1", "2", "3"])
    }

    @Test("A live socket of another program is left alone")
    func foreign() throws {
        let directory = try TestDirectory()
        try #require(mkdir(directory.path + "/canopyd", 0o700) == 0)
        let listener = try UnixSocket.make(SOCK_STREAM)
        defer { close(listener) }
        try #require(UnixSocket.call(bind, listener, directory.socketPath) == 0)
        try #require(listen(listener, 1) == 0)
        let before = try directory.status(directory.socketPath).st_ino
        #expect(try CanopydProgram.run(in: directory).exitCode == 1)
        #expect(try directory.status(directory.socketPath).st_ino == before)
    }

    @Test("What is not a socket is left alone")
    func notASocket() throws {
        let directory = try TestDirectory()
        try directory.write("precious", "canopyd/agent.sock")
        chmod(directory.path + "/canopyd", 0o700)
        let outcome = try CanopydProgram.run(in: directory)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("not a socket"))
        #expect(
            try String(contentsOfFile: directory.socketPath, encoding: .utf8) == "precious")
    }

    @Test("A directory that others can write is refused, with the command that mends it")
    func openDirectory() throws {
        let directory = try TestDirectory()
        try #require(mkdir(directory.path + "/canopyd", 0o700) == 0)
        chmod(directory.path + "/canopyd", 0o777)
        let outcome = try CanopydProgram.run(in: directory)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("chmod 700 \(directory.path)/canopyd"))
    }

    @Test("A path of 107 bytes works, and one of 108 is refused with both numbers")
    func longPaths() throws {
        let directory = try TestDirectory()
        let start = directory.path + "/"
        let longest = start + String(repeating: "s", count: 107 - start.utf8.count)
        let daemon = try RunningDaemon(
            in: directory, socketPath: longest, arguments: ["--socket", longest])
        let client = try daemon.connect()
        try client.send("GET /v1/status HTTP/1.1\r\n\r\n")
        #expect(try client.answer().status == 200)
        let outcome = try CanopydProgram.run(["--socket", longest + "s"], in: directory)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("108"))
        #expect(outcome.words.contains("107"))
    }

    @Test(
        "SIGTERM and SIGINT end it within 2 s, and the socket is gone",
        arguments: [SIGTERM, SIGINT])
    func stops(signal: Int32) throws {
        let directory = try TestDirectory()
        let daemon = try RunningDaemon(in: directory)
        let idle = try daemon.connect()
        let reader = try daemon.connect()
        try reader.send("GET /v1/events HTTP/1.1\r\n\r\n")
        #expect(try reader.answer(hasBody: false).status == 200)
        let clock = ContinuousClock()
        let began = clock.now
        #expect(try daemon.end(by: signal) == 0)
        #expect(clock.now - began < .promised(.seconds(2)))
        #expect(access(directory.socketPath, F_OK) != 0)
        #expect(try idle.isAtEnd())
        #expect(try reader.isAtEnd())
    }

    @Test("A socket that replaced ours is not removed at the end")
    func replaced() throws {
        let directory = try TestDirectory()
        let daemon = try RunningDaemon(in: directory)
        try directory.write("another's", "theirs")
        try #require(rename(directory.path + "/theirs", directory.socketPath) == 0)
        #expect(try daemon.end(by: SIGTERM) == 0)
        #expect(access(directory.socketPath, F_OK) == 0)
    }

    @Test("A bad configuration is refused at the start, and passed over when it is read again")
    func configuration() throws {
        let directory = try TestDirectory()
        try directory.write("[log]\nLevel=loud\n", "conf/canopyd/canopyd.conf")
        let refused = try CanopydProgram.run(in: directory)
        #expect(refused.exitCode == 1)
        #expect(refused.words.contains("canopyd.conf:2:"))
        #expect(try CanopydProgram.run(["--check-config"], in: directory).exitCode == 1)
        try directory.write("[log]\nLevel=debug\n", "conf/canopyd/canopyd.conf")
        #expect(try CanopydProgram.run(["--check-config"], in: directory).exitCode == 0)
        #expect(
            try CanopydProgram.run(["--config", directory.path + "/none"], in: directory).exitCode
                == 1)
    }

    @Test("Signals without a meaning here do nothing", arguments: [SIGUSR1, SIGUSR2, SIGPIPE])
    func otherSignals(signal: Int32) throws {
        let daemon = try RunningDaemon()
        kill(daemon.pid, signal)
        try daemon.connect().expectService()
    }

    /// A shell, as far as this needs one: runs a command in the background of a terminal that stops
    /// whoever writes from there, and takes it along when it ends itself.
    private static let shell = """
        import ctypes, fcntl, os, pty, signal, sys, termios
        terminal, inner = pty.openpty()
        os.setsid()
        fcntl.ioctl(inner, termios.TIOCSCTTY, 0)
        settings = termios.tcgetattr(inner)
        settings[3] |= termios.TOSTOP
        termios.tcsetattr(inner, termios.TCSANOW, settings)
        job = os.fork()
        if job == 0:
            PR_SET_PDEATHSIG = 1
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setpgid(0, 0)
            os.dup2(inner, 2)
            os.execv(sys.argv[1], sys.argv[1:])
        while True:
            os.write(1, os.read(terminal, 4096))
        """

    @Test("In the background of a terminal that lets nobody write from there it serves on")
    func background() throws {
        let directory = try TestDirectory()
        let shell = try Program(
            "/usr/bin/python3", ["-c", Self.shell, try CanopydProgram.path],
            environment: [
                "HOME": directory.path, "XDG_RUNTIME_DIR": directory.path,
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(directory.path)/no-bus",
            ])
        try eventually("it has said that it serves") { shell.output.contains("Serving") }
        try RawClient(directory.socketPath).expectService()
    }

    @Test("Options that make no sense are a mistake of use")
    func usage() throws {
        let directory = try TestDirectory()
        for arguments in [["--nonsense"], ["extra"], ["--socket"], ["--log-level", "loud"]] {
            #expect(try CanopydProgram.run(arguments, in: directory).exitCode == 2)
        }
        #expect(try CanopydProgram.run(["--version"], in: directory).words.hasPrefix("canopyd "))
        #expect(try CanopydProgram.run(["--help"], in: directory).words.contains("--check-config"))
    }
}

@Suite("A connection serves one request after the other", .timeLimit(.minutes(25)))
struct ConnectionTests {
    private let get = "GET /v1/profiles HTTP/1.1\r\nHost: canopyd\r\n\r\n"

    @Test("A connection is kept for the next request")
    func keepAlive() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        for _ in 0..<3 {
            try client.send(get)
            #expect(try client.answer().status == 200)
        }
        try client.send("GET /v1/status HTTP/1.1\r\nConnection: close\r\n\r\n")
        let last = try client.answer()
        #expect(last.head.contains("\r\nConnection: close"))
        #expect(try client.isAtEnd())
    }

    @Test("Requests that come at once are answered in order, even if no more can come")
    func pipelining() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        let paths = (0..<200).map { "/v1/profiles/p\($0)" }
        try client.send(paths.map { "GET \($0) HTTP/1.1\r\n\r\n" }.joined())
        client.closeSending()
        for index in paths.indices {
            let answer = try client.answer()
            // There is no keyring here that could know of the profile.
            #expect(answer.status == 503)
            #expect(answer.body.contains(#""profile":"p\#(index)""#))
        }
        #expect(try client.isAtEnd())
    }

    @Test("A request may come in pieces, and others are served meanwhile")
    func pieces() throws {
        let daemon = try RunningDaemon()
        let slow = try daemon.connect()
        for scalar in get.unicodeScalars.dropLast() {
            try slow.send(String(scalar))
            let other = try daemon.connect()
            try other.send(get)
            #expect(try other.answer().status == 200)
        }
        try slow.send("\n")
        #expect(try slow.answer().status == 200)
    }

    @Test("A client that goes away in the middle of a request harms nobody")
    func halfRequests() throws {
        let daemon = try RunningDaemon()
        for count in [1, 10, get.utf8.count - 1] {
            let client = try daemon.connect()
            try client.send(String(decoding: get.utf8.prefix(count), as: UTF8.self))
            client.closeSending()
            #expect(try client.isAtEnd())
        }
        let client = try daemon.connect()
        try client.send(get)
        #expect(try client.answer().status == 200)
    }

    @Test("A body is skipped where none is read, and the next request starts after it")
    func bodies() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        // The body is made of what would be requests elsewhere.
        let body = String(repeating: "GET /v1/status HTTP/1.1\r\n\r\n  ", count: 1500)
        try client.send(
            "GET /v1/profiles HTTP/1.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
                + "GET /v1/profiles/next HTTP/1.1\r\n\r\n")
        #expect(try client.answer().status == 200)
        #expect(try client.answer().body.contains(#""profile":"next""#))
    }

    @Test("A client that asks first is told to go on, or why not")
    func expectContinue() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        try client.send(
            "GET /v1/profiles HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        #expect(try client.answer(hasBody: false).status == 100)
        try client.send("12345")
        #expect(try client.answer().status == 200)
        try client.send(
            "POST /v1/nowhere HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        let refused = try client.answer()
        #expect(refused.status == 404)
        // The body may be on its way all the same: what comes next is no request.
        #expect(refused.head.contains("\r\nConnection: close"))
        try client.send("GET /v1/status HTTP/1.1\r\n\r\n")
        client.closeSending()
        #expect(try client.isAtEnd())
    }

    @Test("HEAD gets the head that GET gets, and the connection stays in step")
    func head() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        try client.send("HEAD /v1/profiles HTTP/1.1\r\n\r\n" + get)
        let head = try client.answer(hasBody: false)
        let full = try client.answer()
        #expect(head.head == full.head)
        #expect(full.body == #"{"profiles":[]}"#)
    }

    @Test(
        "HEAD gets the head that GET gets, for events as well, and an answer that says close is the last",
        arguments: ["/v1/events", "/v1/events?profile=nobody", "/v1/token", "/v1/nothing"])
    func headOf(target: String) throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        try client.send("HEAD \(target) HTTP/1.1\r\n\r\n" + get)
        let head = try client.answer(hasBody: false)
        let other = try daemon.connect()
        try other.send("GET \(target) HTTP/1.1\r\n\r\n")
        let full = try other.answer(hasBody: false)
        func undated(_ head: String) -> [Substring] {
            head.split(separator: "\r\n").filter { !$0.hasPrefix("Date: ") }
        }
        #expect(undated(head.head) == undated(full.head))
        if head.head.contains("\r\nConnection: close") {
            #expect(try client.isAtEnd())
        } else {
            #expect(try client.answer().status == 200)
        }
    }

    @Test(
        "What two parsers could read in two ways is refused, and the connection ends",
        arguments: [
            "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked",
            "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: +5",
            "Content-Length: 5, 5", "Host : canopyd", "X: a\r\n b", "Host: a\r\nHost: b",
            "Host: canopyd:99999999", "X: a\nTransfer-Encoding: chunked", "X: a\0b", "X: a\rb",
        ])
    func smuggling(fields: String) throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        try client.send("POST /v1/profiles/p/logout HTTP/1.1\r\n\(fields)\r\n\r\n0\r\n\r\n" + get)
        client.closeSending()
        let answer = try client.answer()
        #expect(answer.status == 400)
        #expect(answer.head.contains("\r\nConnection: close"))
        #expect(try client.isAtEnd())
    }

    @Test("Heads and bodies above the limits are refused, and the answer arrives")
    func tooLarge() throws {
        let daemon = try RunningDaemon()
        let long = try daemon.connect()
        try long.send(
            "GET /v1/status HTTP/1.1\r\nX: \(String(repeating: "x", count: 20_000))\r\n\r\n")
        #expect(try long.answer().status == 431)
        let heavy = try daemon.connect()
        try heavy.send(
            "POST /v1/profiles/p/login HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"
                + String(repeating: "x", count: 100_000))
        heavy.closeSending()
        #expect(try heavy.answer().status == 413)
        #expect(try heavy.isAtEnd())
    }

    @Test("Browsers, wrong methods and a missing keyring get their problem")
    func problems() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        try client.send("GET /v1/token HTTP/1.1\r\nOrigin: https://example.com\r\n\r\n")
        #expect(try client.answer().status == 403)
        try client.send("DELETE /v1/status HTTP/1.1\r\n\r\n")
        let wrong = try client.answer()
        #expect(wrong.status == 405)
        #expect(wrong.head.contains("\r\nAllow: GET, HEAD"))
        try client.send("GET /v1/token?profile=nobody HTTP/1.1\r\n\r\n")
        // Nobody can tell whether it is signed in.
        let unknown = try client.answer()
        #expect(unknown.status == 503)
        #expect(unknown.body.contains(#""code":"keyring_unavailable""#))
        #expect(unknown.head.contains("\r\nContent-Type: application/problem+json"))
    }

    @Test("One connection too many is told so, and there is room again when one goes")
    func limit() throws {
        let daemon = try RunningDaemon(configuration: "[limits]\nConnections=3\n")
        var clients = [try daemon.connect(), try daemon.connect(), try daemon.connect()]
        for client in clients {
            try client.send(get)
            #expect(try client.answer().status == 200)
        }
        let refused = try daemon.connect()
        let answer = try refused.answer()
        #expect(answer.status == 503)
        #expect(answer.body.contains(#""code":"too_many_connections""#))
        #expect(try refused.isAtEnd())
        // The daemon has closed its end when we have seen it.
        try clients[0].send("GET /v1/status HTTP/1.1\r\nConnection: close\r\n\r\n")
        #expect(try clients[0].answer().status == 200)
        #expect(try clients[0].isAtEnd())
        clients.removeFirst()
        let admitted = try daemon.connect()
        try admitted.send(get)
        #expect(try admitted.answer().status == 200)
    }

    @Test("A client that does not read what it asked for is not read from either")
    func backPressure() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        let count = 20_000
        let requests = String(repeating: get, count: count)
        let sender = client.sendInBackground(requests)
        // Another client is served while the first one's buffers are full.
        let other = try daemon.connect()
        try other.send(get)
        #expect(try other.answer().status == 200)
        for _ in 0..<count { #expect(try client.answer().status == 200) }
        sender.wait()
    }
}
