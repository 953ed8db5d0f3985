internal import Simulation

/// The command line.
struct Options {
    var seed: UInt64 = 1
    var steps = 10_000_000
    var rotations: Int?
    var theme: Theme?
    var episode: UInt64?

    /// Threads, each of which does its part under a seed of its own.
    var jobs = 1

    /// Returns nil for what is no command line.
    init?(_ arguments: ArraySlice<String>) {
        var rest = arguments
        while let option = rest.popFirst() {
            if option == "--trace" { continue }
            guard let value = rest.popFirst() else { return nil }
            switch option {
            case "--seed":
                guard let number = UInt64(value) else { return nil }
                seed = number
            case "--episode":
                guard let number = UInt64(value) else { return nil }
                episode = number
            case "--steps":
                guard let number = Int(value), number > 0 else { return nil }
                steps = number
            case "--rotations":
                guard let number = Int(value), number > 0 else { return nil }
                rotations = number
            case "--jobs":
                guard let number = Int(value), number > 0 else { return nil }
                jobs = number
            case "--theme":
                guard let named = Theme(rawValue: value) else { return nil }
                theme = named
            default:
                return nil
            }
        }
    }
}
