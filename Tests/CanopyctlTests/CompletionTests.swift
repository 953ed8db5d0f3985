import AgentCore
import Foundation
import Glibc
import Testing

@Suite("canopyctl is completed in shells", .timeLimit(.minutes(25)))
struct CompletionTests {
    /// Two profiles, with a session each.
    private func daemon() throws -> FakeDaemon {
        try FakeDaemon { request in
            if request.line.contains("/profiles/work/sessions") {
                return .json(
                    #"{"sessions":[{"id":"sess_1","created_at":"2026-01-01T00:00:00Z"}]}"#)
            }
            if request.line.contains("/profiles/default/sessions") {
                return .json(#"{"sessions":[{"id":"other_2"}]}"#)
            }
            return .json(#"{"profiles":[{"profile":"default"},{"profile":"work"}]}"#)
        }
    }

    private var path: String {
        get throws {
            URL(fileURLWithPath: try Canopyctl.path).deletingLastPathComponent().path
                + ":/usr/bin"
        }
    }

    // MARK: - bash

    @Test(
        "bash completes commands, options, choices, profiles and sessions",
        arguments: [
            (["ver"], ""), (["ku"], "kube-credential"), (["token", "--min"], "--min-validity"),
            (["completion", "z"], "zsh"), (["exec", "--on-rotate", "n"], "none"),
            (["setup-headless", "--seal-with", "t"], "tpm2"),
            (["token", "--profile", "w"], "work"), (["token", "-p", "w"], "work"),
            // As bash splits --profile=w.
            (["token", "--profile", "=", "w"], "work"),
            (["token", "--profile", "="], "default work"),
            (["revoke", ""], "other_2"), (["revoke", "--profile", "work", "s"], "sess_1"),
            (["revoke", "--profile", "=", "work", "s"], "sess_1"),
            (["exec", "--", "canopyctl-nosuch"], ""), (["exec", "--", "mkfif"], "mkfifo"),
        ])
    func bash(_ words: [String], _ offered: String) throws {
        let script = try Canopyctl.run(["completion", "bash"]).output
        let quoted = (["canopyctl"] + words).map { "'\($0)'" }.joined(separator: " ")
        let outcome = try Canopyctl.run(
            [
                "-c",
                "\(script)\nCOMP_WORDS=(\(quoted)); COMP_CWORD=\(words.count); _canopyctl; "
                    + "printf '%s' \"${COMPREPLY[*]}\"",
            ], daemon: try daemon(), environment: ["PATH": try path], program: "/bin/bash")
        #expect(outcome.words.isEmpty, "\(outcome.words)")
        #expect(outcome.output == offered)
    }

    /// A server that has shells run what it calls a session; and a session of an honest one.
    private func hostile() throws -> (daemon: FakeDaemon, marker: String) {
        let marker = NSTemporaryDirectory() + "completed-\(UUID().uuidString)"
        let ids = [
            "$(touch$IFS\(marker))", "`touch$IFS\(marker)`", "${x:=$(touch$IFS\(marker))}",
            "<(touch$IFS\(marker))", "x;touch$IFS\(marker)", "(touch\(marker))", "*", "~root",
            "--all",
            "{a,b}", "'", "a\\u001b[31m", "honest_1",
        ]
        let sessions = ids.map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
        return (
            try FakeDaemon { request in
                request.line.contains("/sessions")
                    ? .json(#"{"sessions":[\#(sessions)]}"#)
                    : .json(#"{"profiles":[{"profile":"$(touch$IFS\#(marker))"},{"profile":"a"}]}"#)
            }, marker
        )
    }

    @Test(
        "What a server calls a session is no command to a shell that completes it",
        arguments: [(["revoke", ""], "honest_1"), (["token", "-p", ""], "a")])
    func hostileIDs(_ words: [String], _ offered: String) throws {
        let (daemon, marker) = try hostile()
        let quoted = (["canopyctl"] + words).map { "'\($0)'" }.joined(separator: " ")
        let bash = try Canopyctl.run(
            [
                "-c",
                "\(try Canopyctl.run(["completion", "bash"]).output)\nCOMP_WORDS=(\(quoted)); "
                    + "COMP_CWORD=\(words.count); _canopyctl; printf '%s' \"${COMPREPLY[*]}\"",
            ], daemon: daemon, environment: ["PATH": try path], program: "/bin/bash")
        #expect(bash.output == offered, "\(bash.words)")
        let script = daemon.directory + "/canopyctl.fish"
        try Canopyctl.run(["completion", "fish"]).output
            .write(toFile: script, atomically: true, encoding: .utf8)
        let line = words.joined(separator: " ")
        let fish = try Canopyctl.run(
            ["--no-config", "-c", "source '\(script)'; complete -C 'canopyctl \(line)'"],
            daemon: daemon, environment: ["PATH": try path, "HOME": daemon.directory],
            program: "/usr/bin/fish")
        let fished = fish.output.split(separator: "\n").map { $0.split(separator: "\t")[0] }
        #expect(fished == [offered[...]])
        #expect(access(marker, F_OK) != 0, "the shell ran it")
        unlink(marker)
    }

    // MARK: - fish

    @Test(
        "fish completes commands, options, choices, profiles and sessions",
        arguments: [
            ("ku", ["kube-credential"]), ("token --min", ["--min-validity"]),
            ("completion z", ["zsh"]), ("exec --on-rotate n", ["none"]),
            ("token --profile w", ["work"]), ("token -p w", ["work"]),
            ("token --profile=w", ["--profile=work"]), ("revoke ", ["other_2"]),
            ("revoke --profile work ", ["sess_1"]), ("revoke --profile=work ", ["sess_1"]),
            ("exec -- mkfif", ["mkfifo"]), ("completion /et", []),
        ])
    func fish(_ line: String, _ offered: [String]) throws {
        let daemon = try daemon()
        let script = daemon.directory + "/canopyctl.fish"
        try Canopyctl.run(["completion", "fish"]).output
            .write(toFile: script, atomically: true, encoding: .utf8)
        let outcome = try Canopyctl.run(
            ["--no-config", "-c", "source '\(script)'; complete -C 'canopyctl \(line)'"],
            daemon: daemon, environment: ["PATH": try path, "HOME": daemon.directory],
            program: "/usr/bin/fish")
        #expect(outcome.words.isEmpty, "\(outcome.words)")
        // A word, and after a tab what it is.
        let words = outcome.output.split(separator: "\n").map { $0.split(separator: "\t")[0] }
        #expect(words.map(String.init) == offered)
    }

    // MARK: - zsh

    @Test(
        "zsh, on a terminal, completes commands, options, choices, profiles and sessions",
        arguments: [true, false])
    func zsh(isSourced: Bool) throws {
        let daemon = try daemon()
        try Canopyctl.run(["completion", "zsh"]).output
            .write(toFile: daemon.directory + "/_canopyctl", atomically: true, encoding: .utf8)
        let terminal = try PseudoTerminal()
        let shell = try terminal.spawn(
            ["/usr/bin/zsh", "-f", "-i"],
            [
                "PATH": try path, "HOME": daemon.directory, "CANOPYD_SOCKET": daemon.socketPath,
                "TERM": "dumb",
            ])
        defer { kill(shell, SIGKILL) }
        // From fpath as it is installed, or as it is tried at a prompt. From a file: what is typed is
        // shown, and would be taken for the prompt.
        let place = isSourced ? "" : "fpath=('\(daemon.directory)' $fpath)"
        let source = isSourced ? "source '\(daemon.directory)/_canopyctl'" : ""
        try "\(place)\nautoload -Uz compinit\ncompinit -u -D\n\(source)\nPS1='%%ready '\n"
            .write(toFile: daemon.directory + "/setup", atomically: true, encoding: .utf8)
        terminal.type("source '\(daemon.directory)/setup'\n")
        for (line, completed) in [
            ("ku", "kube-credential"), ("token --min", "--min-validity"),
            ("completion z", "completion zsh"), ("token --profile w", "--profile work"),
            ("token --profile=w", "--profile=work"), ("token -p w", "-p work"),
            ("revoke ", "revoke other_2"), ("revoke --profile work ", "work sess_1"),
            ("revoke --profile=work ", "work sess_1"), ("exec -- mkfif", "-- mkfifo"),
            ("curl -- --compresse", "--compressed"),
        ] {
            try terminal.expect("%ready ")
            terminal.type("canopyctl \(line)\t")
            try terminal.expect(completed)
            // ^U, and so nothing for the shell to do.
            terminal.type("\u{15}\n")
        }
    }

    @Test("Each script names every command, and no option for a secret")
    func scripts() throws {
        let help = try Canopyctl.run(["--help"]).output
        for shell in ["bash", "zsh", "fish"] {
            let script = try Canopyctl.run(["completion", shell]).output
            for command in ["login", "exec", "git-credential", "completion"] {
                #expect(help.contains(command) && script.contains(command))
            }
            #expect(!script.contains("--password ") && !script.contains("-l code "))
        }
        #expect(try Canopyctl.run(["completion", "tcsh"]).exitCode == 2)
    }
}
