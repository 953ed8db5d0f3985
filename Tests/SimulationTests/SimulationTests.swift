import Simulation
import Testing

/// The rotation among faults: each theme for itself, so that a failure says where to look.
@Suite(.timeLimit(.minutes(25)))
struct SimulationTests {
    /// A million in all; a failure names its episode, and `scripts/simulate` runs it again.
    private static let steps = 1_000_000 / Theme.allCases.count + 1

    @Test(
        "Whatever happens, only the server or the user ends a session",
        arguments: Theme.allCases)
    func theme(_ theme: Theme) {
        let seed: UInt64 = 20_261_130
        do throws(Violation) {
            let figures = try Simulation.run(seed: seed, themes: [theme]) {
                $0.steps >= Self.steps
            }
            #expect(figures.rotations > 500)
            #expect(figures.survived > 0)
            #expect(figures.incidents == figures.count(.lateRequestAfterHold))
            if theme != .lateProxy { #expect(figures.incidents == 0) }
            // Some need more luck than others, and one a new item in a keyring that fails.
            for fault in theme.faults where fault != .emptyItemLeft {
                #expect(figures.count(fault) > 0, "\(fault) never happened")
            }
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test("What can go wrong is part of a theme")
    func everyFault() {
        let faults = Theme.allCases.reduce(into: Set<Fault>()) { $0.formUnion($1.faults) }
        #expect(faults == Set(Fault.allCases))
        #expect(Theme.everything.faults.isSuperset(of: faults))
    }

    @Test("A run is the same for the same seed")
    func replays() throws {
        let first = try Simulation.run(seed: 5, themes: [.everything]) { $0.steps >= 5000 }
        let second = try Simulation.run(seed: 5, themes: [.everything]) { $0.steps >= 5000 }
        #expect(first.text == second.text)
    }
}
