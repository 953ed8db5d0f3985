import Simulation
import Testing

/// The rotation among faults: each theme for itself, so that a failure says where to look.
@Suite(.timeLimit(.minutes(5)))
struct SimulationTests {
    @Test(
        "Whatever happens, only the server or the user ends a session",
        arguments: Theme.allCases)
    func theme(_ theme: Theme) {
        let seed: UInt64 = 20_261_130
        do throws(Violation) {
            let figures = try Simulation.run(seed: seed, themes: [theme]) { $0.steps >= 95_000 }
            #expect(figures.rotations > 500)
            #expect(figures.survived > 0)
            #expect(figures.incidents == figures.count(.lateRequestAfterHold))
            if theme != .lateProxy { #expect(figures.incidents == 0) }
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test("A run is the same for the same seed")
    func replays() throws {
        let first = try Simulation.run(seed: 5, themes: [.everything]) { $0.steps >= 5000 }
        let second = try Simulation.run(seed: 5, themes: [.everything]) { $0.steps >= 5000 }
        #expect(first.text == second.text)
    }
}
