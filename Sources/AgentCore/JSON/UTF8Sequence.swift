/// One scalar's bytes, by the table of well-formed sequences (Unicode 15, table 3-7).
enum UTF8Sequence {
    /// The length of the well-formed sequence that starts at `index`, or 0 if none does.
    ///
    /// Overlong forms, surrogates and everything above U+10FFFF are not well-formed.
    @inline(__always)
    static func length(in bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        let first = bytes[index]
        if first < 0x80 { return 1 }
        let left = bytes.count - index
        guard left >= 2 else { return 0 }
        let second = bytes[index + 1]
        switch first {
        case 0xC2...0xDF:
            return isContinuation(second) ? 2 : 0
        case 0xE0...0xEF:
            let isLegal =
                switch first {
                case 0xE0: (0xA0...0xBF).contains(second)
                case 0xED: (0x80...0x9F).contains(second)
                default: isContinuation(second)
                }
            return isLegal && left >= 3 && isContinuation(bytes[index + 2]) ? 3 : 0
        case 0xF0...0xF4:
            let isLegal =
                switch first {
                case 0xF0: (0x90...0xBF).contains(second)
                case 0xF4: (0x80...0x8F).contains(second)
                default: isContinuation(second)
                }
            return isLegal && left >= 4 && isContinuation(bytes[index + 2])
                && isContinuation(bytes[index + 3]) ? 4 : 0
        default:
            return 0
        }
    }

    @inline(__always)
    private static func isContinuation(_ byte: UInt8) -> Bool {
        byte & 0xC0 == 0x80
    }
}
