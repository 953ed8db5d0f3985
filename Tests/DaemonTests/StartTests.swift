import AgentCore
import CLinux
import Foundation
import Glibc
import LinuxSystem
import Testing

@Suite("What the programs say before they do anything", .timeLimit(.minutes(25)))
struct StartTests {
    // MARK: Standard output

    @Test(
        "A reader that has gone ends them without a word, and one that is full with words",
        arguments: [
            ["canopyd", "--help"], ["canopyd", "--version"], ["canopyd-exchange", "--version"],
            ["canopy-sandbox", "--help"], ["canopy-sandbox", "--version"],
        ])
    func output(_ command: [String]) throws {
        for signal in ["--ignore-signal=PIPE", "--default-signal=PIPE"] {
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            close(ends[0])
            let gone = try run(command, to: ends[1], under: ["/usr/bin/env", signal])
            #expect(gone.status == 128 + SIGPIPE && gone.words.isEmpty, "\(gone)")
        }
        let full = try run(command, to: open("/dev/full", O_RDWR | O_CLOEXEC))
        #expect(full.status == 1)
        #expect(full.words.contains("No space left on device"), "\(full.words)")
    }

    private func run(
        _ command: [String], to output: Int32, under wrapper: [String] = []
    ) throws -> (status: Int32, words: String) {
        try #require(output >= 0)
        let program = try Program(
            command[0], Array(command.dropFirst()), environment: ["PATH": "/usr/bin:/bin"],
            under: wrapper, talkingOver: output)
        close(output)
        return (try program.end(), program.output)
    }

    @Test("Where standard error is closed, an exchange's is no other descriptor")
    func closedErrors() throws {
        let stage = try Stage(under: ["/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&-"])
        try stage.logIn()
        try stage.server.plan("hold")
        let client = try stage.daemon.connect()
        try client.send(Stage.request("POST", "/v1/profiles/default/refresh?timeout=60"))
        try eventually("the request is in flight") { try stage.server.held() == 1 }
        let exchange = try #require(try stage.exchanges().first)
        if geteuid() == 0 {
            let errors = "/proc/\(exchange)/fd/2"
            #expect(
                try FileManager.default.destinationOfSymbolicLink(atPath: errors) == "/dev/null")
        }
        try stage.server.release()
        #expect(try client.answer().status == 200)
    }

    // MARK: The configuration

    /// What may stand in the place of canopyd.conf, and what is said of it.
    enum Place: CaseIterable {
        case missing, empty, null, directory, pipe, socket, device, lostLink, lostDirectory, looping
        case unreadable, unreachable, huge, zeroes, utf16, program

        var words: [String] {
            switch self {
            case .missing: ["there is no such file; name another, or leave out --config"]
            case .empty, .null: []
            case .directory: ["this is a directory, and no file; put the configuration into a file"]
            case .pipe: ["this is a pipe, and no file; put the configuration into a file"]
            case .socket: ["this is a socket, and no file; "]
            case .device: ["this is a device, and no file; "]
            case .lostLink, .looping: ["this is a link that leads nowhere; rm "]
            case .lostDirectory: ["is a link that leads nowhere; rm "]
            case .unreadable: ["it may not be read; chmod u+r "]
            case .unreachable: ["a directory on the way to it may not be entered; namei -l "]
            case .huge: [":1: the file has more than 1048576 bytes", "another file is meant"]
            case .zeroes: [":3: the line has a NUL byte", "damaged"]
            case .utf16: [":1: the line has a NUL byte", "in UTF-16"]
            case .program: ["the line has a NUL byte", "another one is meant"]
            }
        }

        /// Whether there is one to make there; what its path is.
        func make(in directory: TestDirectory) throws -> String {
            let folder = directory.path + "/folder"
            let path = folder + "/canopyd.conf"
            try #require(mkdir(folder, 0o700) == 0)
            switch self {
            case .missing: break
            case .empty: try Data().write(to: URL(fileURLWithPath: path))
            case .directory: try #require(mkdir(path, 0o700) == 0)
            case .pipe: try #require(mkfifo(path, 0o600) == 0)
            case .socket:
                let descriptor = try UnixSocket.make(SOCK_STREAM)
                defer { close(descriptor) }
                try #require(UnixSocket.call(bind, descriptor, path) == 0)
            case .null: return "/dev/null"
            case .device: return "/dev/zero"
            case .lostLink: try #require(symlink("nowhere", path) == 0)
            case .looping: try #require(symlink("canopyd.conf", path) == 0)
            case .lostDirectory: try #require(rmdir(folder) == 0 && symlink("nowhere", folder) == 0)
            case .unreadable:
                try Data().write(to: URL(fileURLWithPath: path))
                chmod(path, 0)
            case .unreachable:
                try Data().write(to: URL(fileURLWithPath: path))
                chmod(folder, 0)
            case .huge:
                try Data().write(to: URL(fileURLWithPath: path))
                try #require(truncate(path, 100 << 20) == 0)
            case .zeroes: try Data("[log]\n\nLevel=\0\n".utf8).write(to: URL(fileURLWithPath: path))
            case .utf16:
                try Data("[log]\nLevel=info\n".utf8.flatMap { [$0, 0] }).write(
                    to: URL(fileURLWithPath: path))
            case .program: return try CanopydProgram.path
            }
            return path
        }
    }

    @Test(
        "What is no configuration is told in one line, with its place and a cure",
        arguments: Place.allCases)
    func place(_ place: Place) throws {
        let directory = try TestDirectory()
        let path = try place.make(in: directory)
        defer { chmod(directory.path + "/folder", 0o700) }
        // root reads and enters everything, but for this right.
        let wrapper =
            geteuid() == 0
            ? ["/usr/bin/setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"] : []
        let isGood = place.words.isEmpty
        for arguments in [["--check-config"], []] where !arguments.isEmpty || !isGood {
            let outcome = try CanopydProgram.run(
                arguments + ["--config", path], in: directory, under: wrapper)
            #expect(outcome.exitCode == (isGood ? 0 : 1))
            // Its size makes a configuration of zeroes too large before anything is read of it.
            if place == .program, outcome.words.contains("more than") { continue }
            for words in place.words { #expect(outcome.words.contains(words), "\(outcome.words)") }
            #expect(outcome.words.split(separator: "\n").count == (isGood ? 0 : 1))
            if !isGood { #expect(outcome.words.contains(path), "\(outcome.words)") }
        }
    }

    @Test("A pipe on standard input is no configuration either, and nobody waits for it")
    func standardInput() throws {
        let directory = try TestDirectory()
        let path = try CanopydProgram.path
        let program = try Program(
            "/bin/bash",
            ["-c", "sleep 60 | { exec \"$0\" --check-config --config /dev/stdin; }", path],
            environment: ["HOME": directory.path, "PATH": "/usr/bin:/bin"])
        try eventually("it is refused") {
            program.output.contains("/dev/stdin: this is a pipe, and no file")
        }
        // A file is one by that name as well.
        try directory.write("[log]\nLevel=loud\n", "conf/here")
        let file = try Program(
            "/bin/sh",
            [
                "-c", "exec \"$0\" --check-config --config /dev/stdin <\"$1\"", path,
                directory.path + "/conf/here",
            ],
            environment: ["HOME": directory.path])
        #expect(try file.end() == 1)
        #expect(file.output.contains("/dev/stdin:2: Level="), "\(file.output)")
    }

    @Test("A thousand bad lines are told of by the first of them and their number")
    func manyFaults() throws {
        let directory = try TestDirectory()
        let text = "[log]\n" + String(repeating: "nonsense\n", count: 1000)
        try directory.write(text, "conf/canopyd/canopyd.conf")
        let outcome = try CanopydProgram.run(["--check-config"], in: directory)
        let lines = outcome.words.split(separator: "\n")
        #expect(outcome.exitCode == 1)
        #expect(lines.count == Limits.configurationRemarks + 1)
        #expect(lines.first?.contains("canopyd.conf:2: ") == true)
        #expect(lines.last?.hasSuffix("canopyd.conf: 980 more lines are like that") == true)
    }

    @Test("An empty path is a mistake on the command line", arguments: ["--config", "--socket"])
    func emptyPath(_ option: String) throws {
        let outcome = try CanopydProgram.run([option, ""], in: try TestDirectory())
        #expect(outcome.exitCode == 2)
        #expect(outcome.words.contains("\(option) is empty; it takes a path"), "\(outcome.words)")
    }

    @Test("Without /proc they do what they are told all the same", .enabled(if: geteuid() == 0))
    func withoutProc() throws {
        // canopyctl's copy of Swift's runtime ends it there before a line of ours has run.
        let without = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c"]
        for (name, option, words) in [
            ("canopyd", "--version", "canopyd "), ("canopyd", "--bogus", "no option --bogus"),
            ("canopyd-exchange", "--version", "canopyd-exchange "),
            ("canopy-sandbox", "--help", "Usage: "),
        ] {
            let program = try Program(
                name, [option], environment: ["PATH": "/usr/bin:/bin"],
                under: without + ["mount -t tmpfs none /proc && exec \"$0\" \"$@\""])
            #expect(try program.end() == (option == "--bogus" ? 2 : 0))
            #expect(program.output.contains(words), "\(name): \(program.output)")
        }
    }

    // MARK: Descriptors

    @Test("Too few descriptors are told with their number, what is needed, and how to get more")
    func fewDescriptors() throws {
        // Fewer than four leave no room for the loader to read a library.
        for count in [4, 5, 8, 16, 30, Limits.descriptorsLeast - 1] {
            let outcome = try CanopydProgram.run(
                in: try TestDirectory(), under: ["/usr/bin/prlimit", "--nofile=\(count)", "--"])
            #expect(outcome.exitCode == 1)
            #expect(
                outcome.words == "canopyd: only \(count) files may be open at a time, and "
                    + "\(Limits.descriptorsLeast) are needed; that is the hard limit, which only "
                    + "whoever set it can raise: a shell with ulimit -n (start another), LimitNOFILE= "
                    + "of a unit or of user@.service, or limits.conf(5)\n", "\(outcome.words)")
        }
    }

    @Test("The least that is enough is enough: to sign in, to rotate, to be asked")
    func leastDescriptors() throws {
        // What tests beside this one have open is inherited, and no part of what canopyd needs.
        let script =
            "for each in /proc/self/fd/*; do number=${each##*/}; "
            + "[ $number -lt $((3 + ${LISTEN_FDS:-0})) ] || eval \"exec $number>&-\"; done; "
            + "ulimit -n \(Limits.descriptorsLeast); exec \"$0\" \"$@\""
        let stage = try Stage(under: ["/bin/bash", "-c", script])
        // There is room for one connection, and the last one may not be gone yet.
        try eventually("a sign-in is served") { try stage.tryLogin().status == 200 }
        try eventually("it rotates") {
            let answer = try stage.refresh()
            return try answer.status == 200 && answer.json.number("generation") >= 1
        }
        try eventually("canopyctl is served") { try stage.canopyctl("token").exitCode == 0 }
        try stage.killAndRestart()
        try eventually("a token is served") { try stage.token().status == 200 }
        #expect(!stage.daemon.words.contains("error"), "\(stage.daemon.words)")
    }

    @Test("canopyctl says what it lacks, or needs no more", arguments: [0, 1, 2, 3, 4, 5, 16, 30])
    func canopyctl(_ count: Int) throws {
        let stage = try Stage()
        try stage.logIn()
        let commands = [
            ["token"], ["status"], ["exec", "--", "/bin/true"], ["doctor"],
        ]
        for command in commands {
            let program = try Program(
                "canopyctl", command, environment: stage.desktop.environment,
                under: ["/usr/bin/prlimit", "--nofile=\(count)", "--"])
            let status = try program.end()
            let words = program.output
            if status != 0 {
                #expect(
                    words.contains("of which \(count) may be open (ulimit -n")
                        || words.contains("only \(count) files may be open at a time"),
                    "\(command): \(words)")
            }
            #expect(status < 128, "\(command): \(words)")
            if count >= 4, command[0] == "token" || command[0] == "status" { #expect(status == 0) }
        }
    }
}
