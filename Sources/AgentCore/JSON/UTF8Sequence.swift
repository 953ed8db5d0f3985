/// The table of well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates.
package enum UTF8Sequence {
    /// The length in bytes, 1 to 4, of the character that starts at `start`; nil if none does.
    package static func length(at start: Int, in bytes: UnsafeRawBufferPointer) -> Int? {
        guard start < bytes.count else { return nil }
        let left = bytes.count - start
        let first = bytes[start]
        switch first {
        case 0x00...0x7F: return 1
        case 0xC2...0xDF:
            return left >= 2 && isContinuation(bytes[start + 1]) ? 2 : nil
        case 0xE0...0xEF:
            guard left >= 3 else { return nil }
            let second = bytes[start + 1]
            let lowest: UInt8 = first == 0xE0 ? 0xA0 : 0x80
            let highest: UInt8 = first == 0xED ? 0x9F : 0xBF
            return second >= lowest && second <= highest && isContinuation(bytes[start + 2])
                ? 3 : nil
        case 0xF0...0xF4:
            guard left >= 4 else { return nil }
            let second = bytes[start + 1]
            let lowest: UInt8 = first == 0xF0 ? 0x90 : 0x80
            let highest: UInt8 = first == 0xF4 ? 0x8F : 0xBF
            return second >= lowest && second <= highest && isContinuation(bytes[start + 2])
                && isContinuation(bytes[start + 3]) ? 4 : nil
        default: return nil
        }
    }

    /// The offset of the first byte that belongs to no character; nil if all do.
    package static func firstFault(in bytes: UnsafeRawBufferPointer) -> Int? {
        var at = 0
        while at < bytes.count {
            guard let length = length(at: at, in: bytes) else { return at }
            at += length
        }
        return nil
    }

    private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}

/// Finds the bytes that a JSON string cannot hold as they are, eight at a time.
enum PlainRun {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    /// The offset, from `start` on, of the first quote, backslash or control character, or byte
    /// of 0x80 and more unless `allowingNonASCII`; the number of bytes if there is none.
    @inline(__always)
    static func end(
        from start: Int, in bytes: UnsafeRawBufferPointer, allowingNonASCII: Bool
    ) -> Int {
        var at = start
        let nonASCII = allowingNonASCII ? 0 : tops
        while at &+ 8 <= bytes.count {
            let word = UInt64(
                littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            let quotes = word ^ (ones &* 0x22)
            let backslashes = word ^ (ones &* 0x5C)
            // Each term has a byte's top bit set where the byte is meant. A borrow can set wrong
            // bits above a right one only, so the lowest is always right.
            let found =
                (word & nonASCII)
                | ((word &- ones &* 0x20) & ~word & tops)
                | ((quotes &- ones) & ~quotes & tops)
                | ((backslashes &- ones) & ~backslashes & tops)
            if found != 0 { return at &+ found.trailingZeroBitCount >> 3 }
            at &+= 8
        }
        while at < bytes.count {
            let byte = bytes[at]
            if byte < 0x20 || byte == 0x22 || byte == 0x5C || (byte >= 0x80 && !allowingNonASCII) {
                return at
            }
            at &+= 1
        }
        return at
    }
}
