/// SplitMix64: the same numbers for the same seed, on every machine.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A document near `bytes`: one to four places changed, added, taken away, cut or doubled.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &self) {
            let place = Int.random(in: 0...bytes.count, using: &self)
            // Half of them bytes that formats give a meaning to.
            let meaningful: [UInt8] = Array("\r\n \t:;,=\"\\/?%#[]{}0-+.eu\u{0}".utf8)
            let byte =
                Bool.random(using: &self)
                ? UInt8.random(in: .min ... .max, using: &self)
                : meaningful.randomElement(using: &self) ?? 0
            switch Int.random(in: 0..<5, using: &self) {
            case 0 where place < bytes.count: bytes[place] = byte
            case 1: bytes.insert(byte, at: place)
            case 2 where place < bytes.count: bytes.remove(at: place)
            case 3: bytes.removeSubrange(place...)
            default:
                let end = Int.random(in: place...bytes.count, using: &self)
                bytes.insert(contentsOf: bytes[place..<end], at: place)
            }
        }
        return bytes
    }
}

/// Calls `body` with an exact copy on the heap, so that a read past the end leaves the allocation.
func withExactCopy<Result>(
    of bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Result
) rethrows -> Result {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { copy.deallocate() }
    copy.copyBytes(from: bytes)
    return try body(UnsafeRawBufferPointer(copy))
}
