import CLinux
import Foundation
import Glibc
import Testing

@Suite("A socket path that is lost is made again", .timeLimit(.minutes(25)))
struct LostPathTests {
    @Test("A socket that somebody removed is there again, and old connections go on")
    func removed() throws {
        let daemon = try RunningDaemon()
        let old = try daemon.connect()
        try old.expectService()
        for _ in 0..<3 {
            try #require(unlink(daemon.socketPath) == 0)
            try expectReturn(of: daemon)
        }
        try old.expectService()
        #expect(try daemon.directory.status(daemon.socketPath).st_mode & 0o7777 == 0o600)
        #expect(daemon.words.contains("made again"))
    }

    @Test("A socket that was moved away is there again, and the moved one leads nowhere")
    func moved() throws {
        let daemon = try RunningDaemon()
        let elsewhere = daemon.directory.path + "/elsewhere"
        try #require(rename(daemon.socketPath, elsewhere) == 0)
        try expectReturn(of: daemon)
        let descriptor = try UnixSocket.make(SOCK_STREAM)
        defer { close(descriptor) }
        #expect(UnixSocket.call(Glibc.connect, descriptor, elsewhere) != 0)
        #expect(errno == ECONNREFUSED)
    }

    @Test("A directory that was removed or moved is there again, with the user's rights alone")
    func directory() throws {
        let daemon = try RunningDaemon()
        let directory = daemon.directory.path + "/canopyd"
        try #require(rename(directory, directory + ".old") == 0)
        try expectReturn(of: daemon)
        try #require(unlink(directory + ".old/agent.sock") == 0)
        // What rm does may fail halfway, since we are there again meanwhile.
        for path in [daemon.socketPath, directory + "/agent.lock", directory] { remove(path) }
        try expectReturn(of: daemon)
        #expect(try daemon.directory.status(directory).st_mode & 0o7777 == 0o700)
        #expect(try CanopydProgram.run(in: daemon.directory).words.contains("already running"))
    }

    @Test("A lock that was removed is taken again, so that no second canopyd gets in")
    func lock() throws {
        let daemon = try RunningDaemon()
        let lock = daemon.directory.path + "/canopyd/agent.lock"
        try #require(unlink(lock) == 0)
        try eventually("the lock is there again, and held") {
            let file = open(lock, O_RDWR | O_CLOEXEC)
            defer { close(file) }
            return file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0
        }
        // Nobody else was there.
        #expect(!daemon.words.contains("error"))
        // Without the lock a second one would take this socket for a dead one's.
        let second = try CanopydProgram.run(
            in: TestDirectory(), environment: ["CANOPYD_SOCKET": daemon.socketPath])
        #expect(second.words.contains("already running"))
        try daemon.connect().expectService()
    }

    @Test("What somebody else put at the path stays, and the path is ours again when it goes")
    func foreign() throws {
        let daemon = try RunningDaemon()
        let old = try daemon.connect()
        let theirs = daemon.directory.path + "/theirs"
        try Data("precious".utf8).write(to: URL(fileURLWithPath: theirs))
        try #require(rename(theirs, daemon.socketPath) == 0)
        try eventually("canopyd complains") { daemon.words.contains("is not a socket") }
        try old.expectService()
        #expect(try String(contentsOfFile: daemon.socketPath, encoding: .utf8) == "precious")
        try #require(unlink(daemon.socketPath) == 0)
        try expectReturn(of: daemon)
    }

    @Test("A directory with the right of others to write is used again once that is mended")
    func openDirectory() throws {
        let daemon = try RunningDaemon()
        let directory = daemon.directory.path + "/canopyd"
        chmod(directory, 0o777)
        try #require(unlink(daemon.socketPath) == 0)
        let command = "chmod 700 \(directory)"
        try eventually("canopyd complains") { daemon.words.contains(command) }
        chmod(directory, 0o700)
        try expectReturn(of: daemon)
    }

    @Test("What nobody tells of is found out: a path that leads to the directory again")
    func unseen() throws {
        let directory = try TestDirectory()
        // Of a directory that a link leads to nothing is told when the link changes.
        try directory.write("", "one/canopyd/keep")
        try directory.write("", "two/canopyd/keep")
        for path in ["one/canopyd", "two/canopyd"] { chmod("\(directory.path)/\(path)", 0o700) }
        let link = directory.path + "/link"
        try #require(symlink("one", link) == 0)
        let path = link + "/canopyd/agent.sock"
        let daemon = try RunningDaemon(
            in: directory, socketPath: path, environment: ["XDG_RUNTIME_DIR": link])
        chmod(directory.path + "/one/canopyd", 0o777)
        try #require(unlink(path) == 0)
        try eventually("canopyd complains") { daemon.words.contains("chmod 700") }
        try #require(unlink(link) == 0)
        try #require(symlink("two", link) == 0)
        try expectReturn(of: daemon)
    }

    @Test("Of the directory that came in place of another there is one canopyd as well")
    func renewed() throws {
        let daemon = try RunningDaemon()
        let directory = daemon.directory.path + "/canopyd"
        try #require(rename(directory, directory + ".old") == 0)
        try expectReturn(of: daemon)
        let elsewhere = daemon.directory.path + "/elsewhere.sock"
        let second = try CanopydProgram.run(["--socket", elsewhere], in: daemon.directory)
        #expect(second.words.contains("already running"))
    }

    @Test("Clients that had connected by the path that was lost are served")
    func backlog() throws {
        let daemon = try RunningDaemon()
        kill(daemon.pid, SIGSTOP)
        let waiting = try (0..<200).map { _ in try daemon.connect() }
        try #require(unlink(daemon.socketPath) == 0)
        kill(daemon.pid, SIGCONT)
        for client in waiting { try client.expectService() }
        try expectReturn(of: daemon)
    }

    @Test("The socket that was made again is removed at the end")
    func end() throws {
        let daemon = try RunningDaemon()
        try #require(unlink(daemon.socketPath) == 0)
        try expectReturn(of: daemon)
        #expect(try daemon.end(by: SIGTERM) == 0)
        #expect(access(daemon.socketPath, F_OK) != 0)
    }

    @Test("A socket of the service manager is never removed, and served till the end")
    func activated() throws {
        let directory = try TestDirectory()
        let listener = try managersListener(in: directory)
        defer { close(listener) }
        let before = try directory.status(directory.socketPath).st_ino
        let daemon = try RunningDaemon(in: directory, listeners: [("agent", listener)])
        try daemon.connect().expectService()
        #expect(try daemon.end(by: SIGTERM) == 0)
        #expect(try directory.status(directory.socketPath).st_ino == before)
    }

    @Test("Sockets without names, as systemd-socket-activate passes them, are told by their paths")
    func nameless() throws {
        let directory = try TestDirectory()
        let agent = try managersListener(in: directory)
        defer { close(agent) }
        let path = directory.path + "/canopyd/credential.sock"
        let credential = try UnixSocket.make(SOCK_STREAM)
        defer { close(credential) }
        try #require(UnixSocket.call(bind, credential, path) == 0)
        try #require(listen(credential, 100) == 0)
        let daemon = try RunningDaemon(
            in: directory, listeners: [("", credential), ("", agent)])
        try daemon.connect().expectService()
        #expect(try daemon.end(by: SIGTERM) == 0)
        // Two of one kind are none to choose from.
        let outcome = try CanopydProgram.run(
            in: directory, listeners: [("", agent), ("", agent)])
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("more than one descriptor named agent"))
    }

    @Test("The path of the service manager's socket is made again as well, at the start too")
    func activatedAndLost() throws {
        let directory = try TestDirectory()
        let listener = try managersListener(in: directory)
        defer { close(listener) }
        let daemon = try RunningDaemon(in: directory, listeners: [("agent", listener)])
        try #require(unlink(directory.socketPath) == 0)
        try expectReturn(of: daemon)
        #expect(try daemon.end(by: SIGTERM) == 0)
        // What canopyd has made is canopyd's to remove; the manager's socket has no path now.
        #expect(access(directory.socketPath, F_OK) != 0)
        let next = try RunningDaemon(in: directory, listeners: [("agent", listener)])
        try expectReturn(of: next)
    }

    private func managersListener(in directory: TestDirectory) throws -> Int32 {
        try #require(mkdir(directory.path + "/canopyd", 0o700) == 0)
        let listener = try UnixSocket.make(SOCK_STREAM)
        try #require(UnixSocket.call(bind, listener, directory.socketPath) == 0)
        try #require(listen(listener, 100) == 0)
        return listener
    }

    private func expectReturn(
        of daemon: RunningDaemon, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try eventually("the socket is there again", sourceLocation: sourceLocation) {
            let descriptor = try UnixSocket.make(SOCK_STREAM)
            defer { close(descriptor) }
            return UnixSocket.call(Glibc.connect, descriptor, daemon.socketPath) == 0
        }
        try daemon.connect().expectService(sourceLocation: sourceLocation)
    }
}

extension RawClient {
    /// It is answered.
    func expectService(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try send("GET /v1/profiles HTTP/1.1\r\n\r\n")
        #expect(try answer().status == 200, sourceLocation: sourceLocation)
    }
}
