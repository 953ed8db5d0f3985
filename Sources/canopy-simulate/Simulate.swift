internal import Glibc
internal import Simulation

/// Runs the rotation against a simulated world, and prints what happened.
@main
enum Simulate {
    private static let usage = """
        Usage: canopy-simulate [--seed S] [--steps N | --rotations N] [--theme NAME] [--jobs N]
               canopy-simulate --episode S --theme NAME [--trace]
        """

    static func main() {
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            print(usage)
            print("Themes: " + Theme.allCases.map(\.rawValue).joined(separator: ", "))
            exit(64)
        }
        if let episode = options.episode {
            replay(episode, options.theme ?? .everything)
        } else {
            run(options)
        }
    }

    private static func replay(_ seed: UInt64, _ theme: Theme) {
        let episode = Simulation.replay(seed: seed, theme: theme)
        print(episode.figures.text)
        if let violation = episode.violation {
            print(violation)
            exit(1)
        }
    }

    private static func run(_ options: Options) {
        print("seed            \(options.seed)")
        let clock = ContinuousClock()
        let began = clock.now
        var figures = Figures()
        let parts = (0..<options.jobs).map { Part($0, of: options) }
        for part in parts { part.start() }
        for part in parts { part.wait() }
        for part in parts {
            switch part.result {
            case .success(let counted):
                figures.add(counted)
            case .failure(let violation):
                print(violation)
                exit(1)
            case nil:
                preconditionFailure("a part without a result")
            }
        }
        let elapsed = clock.now - began
        let seconds =
            Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        print(figures.text)
        print("seconds         \(Int(seconds.rounded()))")
        print("steps/second    \(Int(Double(figures.steps) / seconds))")
    }
}
