internal import Glibc
internal import Simulation

/// One part of a run, on a thread and under a seed of its own.
final class Part {
    private let seed: UInt64
    private let options: Options
    private var thread = pthread_t()

    /// What it came to; nil until it has been waited for.
    private(set) var result: Result<Figures, Violation>?

    init(_ number: Int, of options: Options) {
        seed = options.seed &+ UInt64(number)
        self.options = options
    }

    func start() {
        let status = pthread_create(
            &thread, nil,
            { part in
                guard let part else { preconditionFailure("a thread without its part") }
                Unmanaged<Part>.fromOpaque(part).takeUnretainedValue().run()
                return nil
            }, Unmanaged.passUnretained(self).toOpaque())
        precondition(status == 0, "a thread cannot be made: \(status)")
    }

    func wait() {
        pthread_join(thread, nil)
    }

    private func run() {
        let options = options
        let themes = options.theme.map { [$0] } ?? Theme.allCases
        result = Result { () throws(Violation) in
            try Simulation.run(seed: seed, themes: themes) { figures in
                guard let rotations = options.rotations else {
                    return figures.steps * options.jobs >= options.steps
                }
                return figures.rotations * options.jobs >= rotations
            }
        }
    }
}
