/// One value of parsed JSON: a view into the bytes, valid only while they are.
package struct JSONValue {
    package enum Kind: Equatable, Sendable {
        case object, array, string, number, bool, null
    }

    let bytes: UnsafeRawBufferPointer
    let tape: [JSONEntry]
    let index: Int

    private var entry: JSONEntry { tape[index] }

    private func value(at index: Int) -> JSONValue {
        JSONValue(bytes: bytes, tape: tape, index: index)
    }

    package var kind: Kind {
        switch entry.kind {
        case .object: .object
        case .array: .array
        case .plainString, .escapedString: .string
        case .integer, .real: .number
        case .true, .false: .bool
        case .null: .null
        }
    }

    // MARK: Containers

    /// The member of an object; nil if there is none, or this is no object.
    ///
    /// Names are compared after decoding, byte for byte; of duplicates the last counts.
    package subscript(_ key: StaticString) -> JSONValue? {
        member(UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
    }

    /// The member of an object; nil if there is none, or this is no object.
    ///
    /// Names are compared after decoding, byte for byte; of duplicates the last counts.
    @_disfavoredOverload
    package subscript(_ key: String) -> JSONValue? {
        var key = key
        return key.withUTF8 { member(UnsafeRawBufferPointer($0)) }
    }

    private func member(_ key: UnsafeRawBufferPointer) -> JSONValue? {
        guard entry.kind == .object else { return nil }
        var found: Int?
        var name = index + 1
        for _ in 0..<entry.length {
            if value(at: name).isString(key) { found = name + 1 }
            name = Int(tape[name + 1].next)
        }
        return found.map(value(at:))
    }

    /// The number of elements of an array or members of an object (duplicates included); else 0.
    package var count: Int {
        switch entry.kind {
        case .object, .array: Int(entry.length)
        case .plainString, .escapedString, .integer, .real, .true, .false, .null: 0
        }
    }

    /// The elements of an array; of anything else, none.
    package var elements: JSONElements {
        JSONElements(array: self, next: index + 1, left: entry.kind == .array ? count : 0)
    }

    /// The members of an object as written, duplicates included; of anything else, none.
    package var members: JSONMembers {
        JSONMembers(object: self, next: index + 1, left: entry.kind == .object ? count : 0)
    }

    // MARK: Strings

    /// The bytes between the quotes, as written.
    private var written: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            rebasing: bytes[Int(entry.offset)..<Int(entry.offset) + Int(entry.length)])
    }

    /// The number of bytes that the string has in UTF-8; nil if this is no string.
    package var stringCount: Int? {
        switch entry.kind {
        case .plainString: Int(entry.length)
        case .escapedString:
            JSONStringBytes(written).reduce(into: 0) { count, _ in count += 1 }
        case .object, .array, .integer, .real, .true, .false, .null: nil
        }
    }

    /// The decoded string; nil if this is none. Not for secrets, of which it would leave copies.
    package var string: String? {
        guard kind == .string else { return nil }
        return String(unsafeUninitializedCapacity: Int(entry.length)) {
            copyString(to: UnsafeMutableRawBufferPointer($0))
        }
    }

    /// The decoded string, from the bytes straight into secret memory; nil if this is none.
    package func secret(in memory: SecretMemory) -> Secret? {
        guard kind == .string else { return nil }
        return Secret(capacity: Int(entry.length), in: memory, fill: copyString(to:))
    }

    /// Whether this is a string of exactly the UTF-8 bytes `text`, found out without a copy.
    package func isString(_ text: UnsafeRawBufferPointer) -> Bool {
        switch entry.kind {
        case .plainString: text.count == entry.length && written.elementsEqual(text)
        case .escapedString: JSONStringBytes(written).elementsEqual(text)
        case .object, .array, .integer, .real, .true, .false, .null: false
        }
    }

    /// Writes the decoded bytes, which are never more than the written ones.
    private func copyString(to target: UnsafeMutableRawBufferPointer) -> Int {
        guard entry.kind == .escapedString else {
            target.copyMemory(from: written)
            return written.count
        }
        var used = 0
        for byte in JSONStringBytes(written) {
            target[used] = byte
            used += 1
        }
        return used
    }

    // MARK: Other scalars

    /// The number, if it is written as an integer (no fraction, no exponent) and fits.
    package var int: Int64? {
        guard entry.kind == .integer else { return nil }
        let isNegative = written.first == UInt8(ascii: "-")
        var result: Int64 = 0
        for byte in written.dropFirst(isNegative ? 1 : 0) {
            let digit = Int64(byte - UInt8(ascii: "0"))
            let (tenfold, overflow) = result.multipliedReportingOverflow(by: 10)
            // Negative numbers are built downwards, since there is one more of them.
            let (sum, overflowToo) =
                isNegative
                ? tenfold.subtractingReportingOverflow(digit)
                : tenfold.addingReportingOverflow(digit)
            if overflow || overflowToo { return nil }
            result = sum
        }
        return result
    }

    /// The nearest finite number; nil if this is none, or it is beyond the largest.
    package var double: Double? {
        guard kind == .number, let number = Double(String(decoding: written, as: UTF8.self)),
            number.isFinite
        else { return nil }
        return number
    }

    package var bool: Bool? {
        switch entry.kind {
        case .true: true
        case .false: false
        case .object, .array, .plainString, .escapedString, .integer, .real, .null: nil
        }
    }

    package var isNull: Bool { entry.kind == .null }
}

/// The elements of an array, in order.
package struct JSONElements: Sequence, IteratorProtocol {
    fileprivate let array: JSONValue
    fileprivate var next: Int
    fileprivate var left: Int

    package mutating func next() -> JSONValue? {
        guard left > 0 else { return nil }
        left -= 1
        let element = JSONValue(bytes: array.bytes, tape: array.tape, index: next)
        next = Int(array.tape[next].next)
        return element
    }
}

/// The members of an object, in the order in which they are written.
package struct JSONMembers: Sequence, IteratorProtocol {
    fileprivate let object: JSONValue
    fileprivate var next: Int
    fileprivate var left: Int

    package mutating func next() -> (key: String, value: JSONValue)? {
        guard left > 0 else { return nil }
        left -= 1
        let name = JSONValue(bytes: object.bytes, tape: object.tape, index: next)
        let value = JSONValue(bytes: object.bytes, tape: object.tape, index: next + 1)
        next = Int(object.tape[next + 1].next)
        return (name.string ?? "", value)
    }
}

/// The bytes that a string with escapes stands for. The reader has checked the escapes.
struct JSONStringBytes: Sequence, IteratorProtocol {
    private let written: UnsafeRawBufferPointer
    private var at = 0

    /// Bytes of a character that are still to be handed out, the next one lowest.
    private var pending: UInt32 = 0
    private var pendingCount = 0

    init(_ written: UnsafeRawBufferPointer) {
        self.written = written
    }

    mutating func next() -> UInt8? {
        if pendingCount > 0 { return nextPending() }
        guard at < written.count else { return nil }
        let byte = written[at]
        guard byte == UInt8(ascii: "\\"), at + 1 < written.count else {
            at += 1
            return byte
        }
        let escape = written[at + 1]
        guard escape == UInt8(ascii: "u") else {
            at += 2
            return Self.meaning(of: escape)
        }
        let first = Self.codeUnit(at, in: written) ?? 0xFFFD
        at += 6
        var scalar = first
        if (0xD800...0xDBFF).contains(first) {
            let second = Self.codeUnit(at, in: written) ?? 0xDC00
            scalar = 0x10000 + ((first - 0xD800) << 10) + (second & 0x3FF)
            at += 6
        }
        encode(scalar)
        return nextPending()
    }

    private mutating func nextPending() -> UInt8 {
        let byte = UInt8(truncatingIfNeeded: pending)
        pending >>= 8
        pendingCount -= 1
        return byte
    }

    private mutating func encode(_ scalar: UInt32) {
        switch scalar {
        case ..<0x80:
            pending = scalar
            pendingCount = 1
        case ..<0x800:
            pending = 0xC0 | scalar >> 6 | (0x80 | scalar & 0x3F) << 8
            pendingCount = 2
        case ..<0x10000:
            pending = 0xE0 | scalar >> 12 | (0x80 | scalar >> 6 & 0x3F) << 8
            pending |= (0x80 | scalar & 0x3F) << 16
            pendingCount = 3
        default:
            pending = 0xF0 | scalar >> 18 | (0x80 | scalar >> 12 & 0x3F) << 8
            pending |= (0x80 | scalar >> 6 & 0x3F) << 16 | (0x80 | scalar & 0x3F) << 24
            pendingCount = 4
        }
    }

    private static func meaning(of escape: UInt8) -> UInt8 {
        switch escape {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: escape
        }
    }

    /// The UTF-16 code unit of the six bytes `\uXXXX` at `start`; nil if they are not that.
    static func codeUnit(_ start: Int, in bytes: UnsafeRawBufferPointer) -> UInt32? {
        guard start + 6 <= bytes.count else { return nil }
        var unit: UInt32 = 0
        for index in start + 2..<start + 6 {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                unit = unit << 4 | UInt32(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"):
                unit = unit << 4 | UInt32((byte | 0x20) - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return unit
    }
}
