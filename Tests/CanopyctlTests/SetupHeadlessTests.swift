import Foundation
import Testing

@Suite("What setup-headless prints", .timeLimit(.minutes(25)))
struct SetupHeadlessTests {
    @Test("The files that it brings along are those of systemd/headless, to the letter")
    func files() throws {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("systemd/headless")
        let script = try Canopyctl.run(["setup-headless", "--user", "ada"]).output
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
            .filter { $0.contains(".service") && !$0.hasSuffix(".d") }
        #expect(names.count == 4)
        for name in names {
            let text = try String(
                contentsOf: directory.appendingPathComponent(name), encoding: .utf8)
            #expect(script.contains("<<'END'\n\(text)END\n"), "\(name)")
        }
    }

    @Test("Root's part comes first, and is told apart")
    func parts() throws {
        let script = try Canopyctl.run(["setup-headless", "--user", "ada"]).output
        let parts = script.components(separatedBy: "# ---- The user's part")
        #expect(parts.count == 2)
        #expect(parts[0].hasPrefix("# ---- Root's part"))
        #expect(parts[0].contains("loginctl enable-linger"))
        #expect(!parts[1].contains("/etc/systemd/system"))
    }

    @Test("The user's name reaches the script as one word, whatever is in it")
    func quoting() throws {
        let script = try Canopyctl.run(["setup-headless", "--user", "a'$(id)b"]).output
        #expect(script.contains(#"user='a'\''$(id)b'"# + "\n"))
        // Nor does what the environment says end a comment's line.
        let printed = try Canopyctl.run(["setup-headless"], environment: ["USER": "a\nid #"]).output
        #expect(!printed.contains("\nid #"))
    }

    @Test("What is no user's name, and no seal, is a usage error")
    func mistakes() throws {
        for arguments in [
            ["--user", ""], ["--user", "-x"], ["--user", "a b"], ["--user", "a\nb"],
            ["--seal-with", "paper"], ["extra"],
        ] {
            let outcome = try Canopyctl.run(["setup-headless"] + arguments)
            #expect(outcome.exitCode == 2, "\(arguments)")
            #expect(outcome.output.isEmpty)
        }
    }

    @Test("Each seal says what speaks against it", arguments: ["host", "tpm2", "host+tpm2"])
    func tradeOff(_ seal: String) throws {
        let script = try Canopyctl.run(["setup-headless", "--seal-with", seal]).output
        #expect(script.contains("--with-key=\(seal) "))
        #expect(script.contains(seal == "host" ? "useless against" : "power cuts"))
    }
}
