/// Reads JSON as RFC 8259 has it: no comments, nothing after the value; and no byte order mark, invalid
/// UTF-8 or half surrogate pairs, unless broken text is asked to be repaired.
///
/// One pass writes a flat tape of where things are; no text is made. So a token goes from the input
/// straight to a ``Secret``, and what nobody asks for costs nothing.
package enum JSONReader {
    /// What is done about text that is no text: half a surrogate pair, invalid UTF-8, a byte order
    /// mark.
    package enum BrokenText: Sendable {
        case refused
        /// Read as a replacement character, or past: for documents that carry a token, which must
        /// not be lost because somebody's name beside it was cut in the middle of a character.
        case repaired
    }

    /// Where the bytes end.
    package enum End: Sendable {
        /// With the value.
        case whole
        /// Somewhere in it, where the reader of the network stopped: what is complete before that is
        /// read, and nothing is made of what is not.
        case cutOff
    }

    /// Reads the one value that `bytes` hold.
    ///
    /// The value is a view: it is valid only while `bytes` is. Nesting deeper than `maximumDepth`
    /// is refused; it bounds what a document may cost, not a stack, for there is no recursion.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int = Limits.jsonDepth,
        brokenText: BrokenText = .refused, end: End = .whole
    ) throws(JSONFault) -> JSONValue {
        guard bytes.count <= Limits.jsonBytes else {
            throw JSONFault(.tooLong, at: Limits.jsonBytes)
        }
        var scan = JSONScan(
            bytes, maximumDepth: maximumDepth, repairs: brokenText == .repaired,
            isCutOff: end == .cutOff)
        return JSONValue(bytes: bytes, tape: try scan.document(), index: 0)
    }
}

/// One value on the tape; a container's members follow it, an object's as key and value in turn.
struct JSONEntry {
    enum Form {
        case object, array, plainString, escapedString, integer, fraction, `true`, `false`, null
    }

    let form: Form
    /// Of the first byte; of a string the first byte inside the quotes.
    let offset: UInt32
    /// Bytes of a scalar (of a string without the quotes); values of an array, members of an object.
    var length: UInt32
    /// The index on the tape of what comes after this value and all that is in it.
    var next: UInt32
}

/// The pass over the bytes.
private struct JSONScan {
    private let bytes: UnsafeRawBufferPointer
    private let maximumDepth: Int
    private let repairs: Bool
    private let isCutOff: Bool
    private var position = 0
    private var tape: [JSONEntry] = []
    /// The containers that are open, by their index on the tape.
    private var open: [Int] = []
    /// Where on the tape the member begins that is being read; nil between two.
    private var begun: Int?

    init(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int, repairs: Bool, isCutOff: Bool
    ) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
        self.repairs = repairs
        self.isCutOff = isCutOff
    }

    mutating func document() throws(JSONFault) -> [JSONEntry] {
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
            guard repairs else { throw JSONFault(.byteOrderMark, at: 0) }
            position = 3
        }
        skipSpace()
        try value()
        while let container = open.last {
            do throws(JSONFault) {
                try member(of: container)
            } catch {
                guard isCutOff, error.reason == .unexpectedEnd else { throw error }
                end(container)
            }
        }
        guard position == bytes.count else { throw JSONFault(.trailingBytes, at: position) }
        return tape
    }

    /// Reads up to and including one more value of `container`, or its end.
    private mutating func member(of container: Int) throws(JSONFault) {
        let isObject = tape[container].form == .object
        let end = UInt8(ascii: isObject ? "}" : "]")
        let isFirst = tape[container].length == 0
        var byte = try present()
        if byte == end {
            position += 1
            tape[container].next = UInt32(tape.count)
            open.removeLast()
            skipSpace()
            return
        }
        if !isFirst {
            guard byte == UInt8(ascii: ",") else { throw JSONFault(.unexpectedByte, at: position) }
            position += 1
            skipSpace()
            byte = try present()
        }
        begun = tape.count
        tape[container].length += 1
        if isObject {
            guard byte == UInt8(ascii: "\"") else { throw JSONFault(.unexpectedByte, at: position) }
            try string()
            skipSpace()
            guard try present() == UInt8(ascii: ":") else {
                throw JSONFault(.unexpectedByte, at: position)
            }
            position += 1
            skipSpace()
        }
        try value()
        begun = nil
    }

    /// Ends the innermost container, and all around it, where the bytes end.
    private mutating func end(_ container: Int) {
        position = bytes.count
        if let begun {
            tape.removeSubrange(begun...)
            tape[container].length -= 1
        }
        for container in open { tape[container].next = UInt32(tape.count) }
        open = []
    }

    /// Reads a scalar, or the opening of a container, and the space after it.
    private mutating func value() throws(JSONFault) {
        switch try present() {
        case UInt8(ascii: "{"): try begin(.object)
        case UInt8(ascii: "["): try begin(.array)
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try word("true", .true)
        case UInt8(ascii: "f"): try word("false", .false)
        case UInt8(ascii: "n"): try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
        default: throw JSONFault(.unexpectedByte, at: position)
        }
        skipSpace()
    }

    private mutating func begin(_ form: JSONEntry.Form) throws(JSONFault) {
        guard open.count < maximumDepth else { throw JSONFault(.tooDeep, at: position) }
        open.append(tape.count)
        // `next` is set when the container ends; until then nobody reads it.
        tape.append(JSONEntry(form: form, offset: UInt32(position), length: 0, next: 0))
        position += 1
    }

    private mutating func append(_ form: JSONEntry.Form, from start: Int, to end: Int) {
        tape.append(
            JSONEntry(
                form: form, offset: UInt32(start), length: UInt32(end - start),
                next: UInt32(tape.count + 1)))
    }

    private mutating func word(
        _ text: StaticString, _ form: JSONEntry.Form
    ) throws(JSONFault) {
        let start = position
        for index in 0..<text.utf8CodeUnitCount {
            guard try present() == text.utf8Start[index] else {
                throw JSONFault(.unexpectedByte, at: position)
            }
            position += 1
        }
        append(form, from: start, to: position)
    }

    private mutating func number() throws(JSONFault) {
        let start = position
        var form = JSONEntry.Form.integer
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        let first = position
        try digits()
        if bytes[first] == UInt8(ascii: "0"), position > first + 1 {
            throw JSONFault(.badNumber, at: first + 1)
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            form = .fraction
            position += 1
            try digits()
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            form = .fraction
            position += 1
            let sign = try present()
            if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        // More of it may have come.
        if isCutOff, position == bytes.count { throw JSONFault(.unexpectedEnd, at: position) }
        append(form, from: start, to: position)
    }

    /// One digit or more.
    private mutating func digits() throws(JSONFault) {
        let start = position
        while position < bytes.count, bytes[position] &- UInt8(ascii: "0") < 10 { position += 1 }
        guard position > start else {
            throw JSONFault(position < bytes.count ? .badNumber : .unexpectedEnd, at: position)
        }
    }

    private mutating func string() throws(JSONFault) {
        position += 1
        let start = position
        var form = JSONEntry.Form.plainString
        while true {
            let byte = try present()
            switch byte {
            case UInt8(ascii: "\""):
                append(form, from: start, to: position)
                position += 1
                return
            case UInt8(ascii: "\\"):
                form = .escapedString
                try escape()
            case 0..<0x20:
                throw JSONFault(.controlCharacter, at: position)
            case 0x20..<0x80:
                position += 1
            default:
                let length = UTF8Sequence.length(in: bytes, at: position)
                guard length > 0 || repairs else { throw JSONFault(.invalidUTF8, at: position) }
                position += max(length, 1)
            }
        }
    }

    private mutating func escape() throws(JSONFault) {
        let start = position
        position += 1
        switch try present() {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        case UInt8(ascii: "u"):
            position += 1
            let unit = try fourHexDigits()
            guard (0xD800...0xDFFF).contains(unit) else { break }
            let end = position
            guard unit < 0xDC00, try isLowSurrogate() else {
                guard repairs else { throw JSONFault(.loneSurrogate, at: start) }
                // What follows is read on its own.
                position = end
                break
            }
        default:
            throw JSONFault(.badEscape, at: start)
        }
    }

    /// Reads past the second half of a pair, if that is what comes.
    private mutating func isLowSurrogate() throws(JSONFault) -> Bool {
        guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position + 1] == UInt8(ascii: "u")
        else { return false }
        position += 2
        return (0xDC00...0xDFFF).contains(try fourHexDigits())
    }

    private mutating func fourHexDigits() throws(JSONFault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = hexDigit(try present()) else {
                throw JSONFault(.badEscape, at: position)
            }
            unit = unit << 4 | digit
            position += 1
        }
        return unit
    }

    private func present() throws(JSONFault) -> UInt8 {
        guard position < bytes.count else { throw JSONFault(.unexpectedEnd, at: position) }
        return bytes[position]
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t"):
                position += 1
            default:
                return
            }
        }
    }
}

/// The value of a hexadecimal digit in either case.
func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A")) + 10
    default: nil
    }
}
