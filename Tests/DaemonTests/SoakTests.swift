import Foundation
import Glibc
import Testing

@Suite("Kills by the hundred", .timeLimit(.minutes(10)))
struct SoakTests {
    @Test("E02, A15: 200 kills of whatever runs, under every fault of the server: nothing is lost")
    func soak() throws {
        // A failure's seed repeats what is done, though not to the microsecond.
        let seed = UInt32.random(in: 1...UInt32.max)
        print("soak: seed \(seed)")
        let scripts =
            URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path + "/scripts"
        let programs = URL(fileURLWithPath: try CanopydProgram.path)
            .deletingLastPathComponent().path
        let program = try Program(
            "/usr/bin/env",
            [
                "python3", scripts + "/soak", "--kills", "200", "--seed", "\(seed)", "--bin",
                programs,
            ], environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"])
        let exitCode = try program.end(within: 300)
        print(program.output)
        #expect(exitCode == 0, "scripts/soak --kills 200 --seed \(seed) --bin \(programs)")
    }
}
