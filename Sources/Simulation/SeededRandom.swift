internal import AgentCore

/// SplitMix64: the same numbers for the same seed, on every machine.
package struct SeededRandom: Sendable {
    private var state: UInt64

    /// Any number is a seed.
    package init(seed: UInt64) {
        state = seed
    }

    mutating func word() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number in 0..<1.
    mutating func draw() -> Double {
        Double(word() >> 11) * 0x1p-53
    }

    /// A number in 0..<`bound`.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: word() >> 33) % bound
    }

    /// True once in `count` times; never for 0.
    mutating func isOne(in count: Int) -> Bool {
        count > 0 && below(count) == 0
    }

    /// A time in nanoseconds between two given in milliseconds.
    mutating func time(_ from: Int, _ to: Int) -> Int64 {
        Int64(from) * 1_000_000 + Int64(draw() * Double(to - from) * 1_000_000)
    }
}
