internal import CLinux

/// The kernel's random numbers.
package enum Randomness {
    /// 64 random bits.
    package static func word() -> UInt64 {
        var word: UInt64 = 0
        // Cannot fail: the buffer is ours and small, and the pool is ready before a session is.
        while clinux_getrandom(&word, MemoryLayout<UInt64>.size) != MemoryLayout<UInt64>.size {}
        return word
    }
}
