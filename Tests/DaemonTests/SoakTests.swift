import Foundation
import Glibc
import Testing

@Suite("Kills by the hundred", .timeLimit(.minutes(25)))
struct SoakTests {
    @Test("E02, A15: 200 kills of whatever runs, under every fault of the server: nothing is lost")
    func soak() throws {
        // It repeats what is done, though not to the microsecond.
        let seed = UInt32.random(in: 1...UInt32.max)
        say("scripts/soak --seed \(seed)\n")
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path
        let programs = URL(fileURLWithPath: try CanopydProgram.path)
            .deletingLastPathComponent().path
        let program = try Program(
            "/usr/bin/python3",
            [root + "/scripts/soak", "--kills", "200", "--seed", "\(seed)", "--bin", programs],
            environment: ["PATH": "/usr/bin:/bin"])
        let exitCode = try program.end(within: 300)
        say(program.output)
        #expect(exitCode == 0, "scripts/soak --kills 200 --seed \(seed) --bin \(programs)")
    }

    /// At once: standard output is kept back until the end, after the test run's last line.
    private func say(_ text: String) {
        FileHandle.standardError.write(Data(text.utf8))
    }
}
