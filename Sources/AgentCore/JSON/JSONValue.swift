/// One value of a document: a view, valid only while the bytes that were parsed are.
package struct JSONValue {
    package enum Kind: Equatable, Sendable {
        case object, array, string, number, bool, null
    }

    private let bytes: UnsafeRawBufferPointer
    private let tape: [JSONEntry]
    private let index: Int

    init(bytes: UnsafeRawBufferPointer, tape: [JSONEntry], index: Int) {
        self.bytes = bytes
        self.tape = tape
        self.index = index
    }

    package var kind: Kind {
        switch entry.form {
        case .object: .object
        case .array: .array
        case .plainString, .escapedString: .string
        case .integer, .fraction: .number
        case .true, .false: .bool
        case .null: .null
        }
    }

    /// The member of that name; nil if there is none, or if this is no object.
    ///
    /// Of several the last counts. Names are compared by their decoded bytes.
    package subscript(_ key: StaticString) -> JSONValue? {
        member(UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
    }

    /// The member of that name; nil if there is none, or if this is no object.
    ///
    /// Of several the last counts. Names are compared by their decoded bytes.
    @_disfavoredOverload
    package subscript(_ key: String) -> JSONValue? {
        var key = key
        return key.withUTF8 { member(UnsafeRawBufferPointer($0)) }
    }

    private func member(_ name: UnsafeRawBufferPointer) -> JSONValue? {
        guard entry.form == .object else { return nil }
        var found: Int?
        var key = index + 1
        for _ in 0..<entry.length {
            if JSONText(bytes, tape[key]).equals(name) { found = key + 1 }
            key = Int(tape[key + 1].next)
        }
        return found.map { JSONValue(bytes: bytes, tape: tape, index: $0) }
    }

    /// The decoded text of a string; nil of anything else.
    package var string: String? { text?.string }

    /// The decoded bytes of a string, written straight into `memory`; nil of anything else.
    package func secret(in memory: SecretMemory) -> Secret? {
        guard let text else { return nil }
        return Secret(capacity: text.count, in: memory) { text.decode(into: $0) }
    }

    /// How many bytes the decoded string has; nil of anything else.
    package var stringCount: Int? { text?.count }

    /// A number that is written without fraction and exponent, if 64 bits hold it.
    package var int: Int64? {
        guard entry.form == .integer else { return nil }
        let written = slice
        let isNegative = written[0] == UInt8(ascii: "-")
        var value: Int64 = 0
        for byte in written.dropFirst(isNegative ? 1 : 0) {
            let digit = Int64(byte - UInt8(ascii: "0"))
            let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
            // Counted below zero, where one more value fits.
            let (sum, carry) = shifted.subtractingReportingOverflow(digit)
            if overflow || carry { return nil }
            value = sum
        }
        if isNegative { return value }
        let (positive, overflow) = Int64(0).subtractingReportingOverflow(value)
        return overflow ? nil : positive
    }

    /// Any number, rounded to the nearest `Double`; nil if that is infinite.
    package var double: Double? {
        guard entry.form == .integer || entry.form == .fraction,
            let value = Double(String(decoding: slice, as: UTF8.self)), value.isFinite
        else { return nil }
        return value
    }

    package var bool: Bool? {
        switch entry.form {
        case .true: true
        case .false: false
        case .object, .array, .plainString, .escapedString, .integer, .fraction, .null: nil
        }
    }

    package var isNull: Bool { entry.form == .null }

    /// The values of an array in order; nothing of anything else.
    package var elements: Elements {
        Elements(container: self, left: entry.form == .array ? count : 0, position: index + 1)
    }

    /// The members of an object as written, duplicates included; nothing of anything else.
    package var members: Members {
        Members(container: self, left: entry.form == .object ? count : 0, position: index + 1)
    }

    /// How many values an array or members an object has, duplicates included; 0 of anything else.
    package var count: Int {
        entry.form == .array || entry.form == .object ? Int(entry.length) : 0
    }

    /// The values of an array.
    package struct Elements: Sequence, IteratorProtocol {
        fileprivate let container: JSONValue
        fileprivate var left: Int
        fileprivate var position: Int

        package mutating func next() -> JSONValue? {
            guard left > 0 else { return nil }
            left -= 1
            defer { position = Int(container.tape[position].next) }
            return JSONValue(bytes: container.bytes, tape: container.tape, index: position)
        }
    }

    /// The members of an object.
    package struct Members: Sequence, IteratorProtocol {
        fileprivate let container: JSONValue
        fileprivate var left: Int
        fileprivate var position: Int

        package mutating func next() -> (key: String, value: JSONValue)? {
            guard left > 0 else { return nil }
            left -= 1
            defer { position = Int(container.tape[position + 1].next) }
            return (
                JSONText(container.bytes, container.tape[position]).string,
                JSONValue(bytes: container.bytes, tape: container.tape, index: position + 1)
            )
        }
    }

    private var entry: JSONEntry { tape[index] }

    private var slice: UnsafeRawBufferPointer {
        let start = Int(entry.offset)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(entry.length)])
    }

    private var text: JSONText? {
        switch entry.form {
        case .plainString, .escapedString: JSONText(bytes, entry)
        case .object, .array, .integer, .fraction, .true, .false, .null: nil
        }
    }
}

/// A string as it is written, escapes and all; the reader has checked it.
private struct JSONText {
    private let written: UnsafeRawBufferPointer
    private let isEscaped: Bool

    init(_ bytes: UnsafeRawBufferPointer, _ entry: JSONEntry) {
        let start = Int(entry.offset)
        written = UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(entry.length)])
        isEscaped = entry.form == .escapedString
    }

    /// The number of decoded bytes.
    var count: Int {
        guard isEscaped else { return written.count }
        var count = 0
        forEachPiece { count += $0.count }
        return count
    }

    var string: String {
        guard isEscaped else { return String(decoding: written, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: count) {
            decode(into: UnsafeMutableRawBufferPointer($0))
        }
    }

    /// Writes the decoded bytes, ``count`` of them, to the start of `target`.
    func decode(into target: UnsafeMutableRawBufferPointer) -> Int {
        var filled = 0
        forEachPiece { piece in
            UnsafeMutableRawBufferPointer(rebasing: target[filled..<filled + piece.count])
                .copyMemory(from: piece)
            filled += piece.count
        }
        return filled
    }

    func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        // Decoding never lengthens.
        guard isEscaped ? written.count >= other.count : written.count == other.count else {
            return false
        }
        var matched = 0
        var isEqual = true
        forEachPiece { piece in
            guard isEqual, matched + piece.count <= other.count,
                piece.elementsEqual(other[matched..<matched + piece.count])
            else {
                isEqual = false
                return
            }
            matched += piece.count
        }
        return isEqual && matched == other.count
    }

    /// Calls `body` with the decoded bytes in order: runs without an escape, and decoded scalars.
    private func forEachPiece(_ body: (UnsafeRawBufferPointer) -> Void) {
        guard isEscaped else { return body(written) }
        var position = 0
        var runStart = 0
        while position < written.count {
            guard written[position] == UInt8(ascii: "\\") else {
                position += 1
                continue
            }
            if position > runStart {
                body(UnsafeRawBufferPointer(rebasing: written[runStart..<position]))
            }
            let (scalar, length) = escape(at: position)
            withScalar(scalar, body)
            position += length
            runStart = position
        }
        if position > runStart {
            body(UnsafeRawBufferPointer(rebasing: written[runStart..<position]))
        }
    }

    /// The scalar that the escape at `position` stands for, and the escape's bytes.
    private func escape(at position: Int) -> (scalar: UInt32, length: Int) {
        switch written[position + 1] {
        case UInt8(ascii: "b"): return (0x08, 2)
        case UInt8(ascii: "f"): return (0x0C, 2)
        case UInt8(ascii: "n"): return (0x0A, 2)
        case UInt8(ascii: "r"): return (0x0D, 2)
        case UInt8(ascii: "t"): return (0x09, 2)
        case UInt8(ascii: "u"):
            let unit = codeUnit(at: position + 2)
            guard (0xD800...0xDFFF).contains(unit) else { return (unit, 6) }
            guard unit < 0xDC00, let low = lowSurrogate(at: position + 6) else {
                // Half a pair, which the reader was told to take.
                return (0xFFFD, 6)
            }
            return (0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00), 12)
        case let itself: return (UInt32(itself), 2)
        }
    }

    private func lowSurrogate(at position: Int) -> UInt32? {
        guard position + 6 <= written.count, written[position] == UInt8(ascii: "\\"),
            written[position + 1] == UInt8(ascii: "u")
        else { return nil }
        let unit = codeUnit(at: position + 2)
        return (0xDC00...0xDFFF).contains(unit) ? unit : nil
    }

    private func codeUnit(at position: Int) -> UInt32 {
        var unit: UInt32 = 0
        for index in position..<position + 4 {
            unit = unit << 4 | (hexDigit(written[index]) ?? 0)
        }
        return unit
    }

    private func withScalar(_ scalar: UInt32, _ body: (UnsafeRawBufferPointer) -> Void) {
        func tail(_ shift: UInt32) -> UInt32 { 0x80 | scalar >> shift & 0x3F }
        let (bytes, count): (UInt32, Int) =
            switch scalar {
            case 0..<0x80: (scalar, 1)
            case 0x80..<0x800: (0xC0 | scalar >> 6 | tail(0) << 8, 2)
            case 0x800..<0x10000: (0xE0 | scalar >> 12 | tail(6) << 8 | tail(0) << 16, 3)
            default:
                (0xF0 | scalar >> 18 | tail(12) << 8 | tail(6) << 16 | tail(0) << 24, 4)
            }
        var inOrder = bytes.littleEndian
        withUnsafeMutableBytes(of: &inOrder) { scratch in
            body(UnsafeRawBufferPointer(rebasing: scratch[0..<count]))
            // It may have been a secret's.
            scratch.storeBytes(of: 0, as: UInt32.self)
        }
    }
}
