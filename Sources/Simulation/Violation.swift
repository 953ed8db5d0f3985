/// A promise that was broken, and the run that broke it.
package struct Violation: Error, Sendable, CustomStringConvertible {
    /// Which promise, in a sentence.
    package let rule: String
    /// The episode's own seed.
    package let seed: UInt64
    package let theme: Theme
    /// The last things that happened, if the run was traced.
    package let trace: [String]

    package var description: String {
        let line =
            "\(rule)\nreplay: scripts/simulate --episode \(seed) --theme \(theme.rawValue) --trace"
        return trace.isEmpty ? line : trace.joined(separator: "\n") + "\n" + line
    }
}
