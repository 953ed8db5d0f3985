/// Some options, in the order in which they are declared.
///
/// Bits, and no array: making the types of arrays at run time was a third of what `canopyctl token`
/// executed.
struct Options: Sequence, ExpressibleByArrayLiteral {
    private var bits: UInt32 = 0

    init(arrayLiteral options: Option...) {
        for option in options { bits |= 1 << UInt32(option.rawValue) }
    }

    private init(bits: UInt32) {
        self.bits = bits
    }

    /// What every command has.
    static let common: Options = [.help, .version]

    static func + (one: Options, other: Options) -> Options {
        Options(bits: one.bits | other.bits)
    }

    var count: Int { bits.nonzeroBitCount }

    func contains(_ option: Option) -> Bool { bits & 1 << UInt32(option.rawValue) != 0 }

    func makeIterator() -> Iterator { Iterator(bits: bits) }

    struct Iterator: IteratorProtocol {
        fileprivate var bits: UInt32

        mutating func next() -> Option? {
            guard bits != 0 else { return nil }
            let lowest = bits.trailingZeroBitCount
            bits &= bits - 1
            return Option(rawValue: Int32(lowest))
        }
    }
}
