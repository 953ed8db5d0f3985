/// Reads JSON as RFC 8259 has it, and nothing else: one value, in UTF-8, to the last byte.
///
/// One pass makes a flat tape of where values are. No string is copied before it is asked for,
/// since its bytes may be a secret's. Nesting costs no stack.
package enum JSONReader {
    /// Parses `bytes` into a view, which is valid only while `bytes` is.
    ///
    /// Objects and arrays may nest `maximumDepth` deep. Throws where and why `bytes` are refused.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int = Limits.jsonDepth
    ) throws(JSONFault) -> JSONValue {
        // The tape counts in 32 bits.
        guard bytes.count <= Int(Int32.max) else { throw JSONFault(.tooLong, at: bytes.count) }
        var pass = JSONPass(bytes: bytes, maximumDepth: maximumDepth)
        try pass.run()
        return JSONValue(bytes: bytes, tape: pass.tape, index: 0)
    }
}

/// Where one value is.
struct JSONEntry {
    enum Kind: UInt8 {
        case object, array
        case plainString, escapedString
        case integer, real
        case `true`, `false`, null
    }

    let kind: Kind

    /// The first byte; of a string, the one after the quote.
    let offset: UInt32

    /// The number of bytes of a string (as written, without quotes) or a number; the number of
    /// elements or members of a container.
    var length: UInt32

    /// The index of the entry after this one and all that is in it. Of a container that is still
    /// open: the index of the container around it.
    var next: UInt32
}

private struct JSONPass {
    private static let outside = UInt32.max

    private let bytes: UnsafeRawBufferPointer
    private let maximumDepth: Int
    private var at = 0
    private var depth = 0
    private var container = outside
    private(set) var tape: [JSONEntry] = []

    init(bytes: UnsafeRawBufferPointer, maximumDepth: Int) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
        tape.reserveCapacity(min(bytes.count / 8 + 1, 64))
    }

    mutating func run() throws(JSONFault) {
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
            throw JSONFault(.byteOrderMark, at: 0)
        }
        repeat {
            try value()
        } while try !isOverAfterValue()
    }

    /// Reads a value, or the start of a container up to where its first value begins.
    private mutating func value() throws(JSONFault) {
        while true {
            switch try nextByte() {
            case UInt8(ascii: "{"):
                try open(.object)
                guard try nextByte() != UInt8(ascii: "}") else { return close() }
                try key()
            case UInt8(ascii: "["):
                try open(.array)
                guard try nextByte() != UInt8(ascii: "]") else { return close() }
            case UInt8(ascii: "\""):
                countInContainer()
                return try string()
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                return try number()
            case UInt8(ascii: "t"): return try word("true", .true)
            case UInt8(ascii: "f"): return try word("false", .false)
            case UInt8(ascii: "n"): return try word("null", .null)
            default: throw JSONFault(.unexpectedByte, at: at)
            }
        }
    }

    /// Closes what ends here. Whether that was all; else the next value begins here.
    private mutating func isOverAfterValue() throws(JSONFault) -> Bool {
        while container != Self.outside {
            let isObject = tape[Int(container)].kind == .object
            switch try nextByte() {
            case UInt8(ascii: ","):
                at += 1
                if isObject { try key() }
                return false
            case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject: close()
            default: throw JSONFault(.unexpectedByte, at: at)
            }
        }
        skipSpace()
        guard at == bytes.count else { throw JSONFault(.trailingBytes, at: at) }
        return true
    }

    private mutating func open(_ kind: JSONEntry.Kind) throws(JSONFault) {
        guard depth < maximumDepth else { throw JSONFault(.tooDeep, at: at) }
        depth += 1
        countInContainer()
        tape.append(JSONEntry(kind: kind, offset: UInt32(at), length: 0, next: container))
        container = UInt32(tape.count - 1)
        at += 1
    }

    /// Steps over the closing bracket.
    private mutating func close() {
        at += 1
        depth -= 1
        let closed = Int(container)
        container = tape[closed].next
        tape[closed].next = UInt32(tape.count)
    }

    private mutating func countInContainer() {
        if container != Self.outside { tape[Int(container)].length += 1 }
    }

    private mutating func append(_ kind: JSONEntry.Kind, from offset: Int, length: Int) {
        tape.append(
            JSONEntry(
                kind: kind, offset: UInt32(offset), length: UInt32(length),
                next: UInt32(tape.count + 1)))
    }

    private mutating func key() throws(JSONFault) {
        guard try nextByte() == UInt8(ascii: "\"") else { throw JSONFault(.unexpectedByte, at: at) }
        try string()
        guard try nextByte() == UInt8(ascii: ":") else { throw JSONFault(.unexpectedByte, at: at) }
        at += 1
    }

    private mutating func string() throws(JSONFault) {
        at += 1
        let start = at
        var kind = JSONEntry.Kind.plainString
        while true {
            at = PlainRun.end(from: at, in: bytes, allowingNonASCII: false)
            guard at < bytes.count else { throw JSONFault(.unexpectedEnd, at: at) }
            switch bytes[at] {
            case UInt8(ascii: "\""):
                append(kind, from: start, length: at - start)
                at += 1
                return
            case UInt8(ascii: "\\"):
                kind = .escapedString
                try escape()
            case 0x00...0x1F: throw JSONFault(.controlCharacter, at: at)
            default:
                guard let length = UTF8Sequence.length(at: at, in: bytes) else {
                    throw JSONFault(.invalidUTF8, at: at)
                }
                at += length
            }
        }
    }

    private mutating func escape() throws(JSONFault) {
        guard at + 1 < bytes.count else { throw JSONFault(.unexpectedEnd, at: bytes.count) }
        switch bytes[at + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            at += 2
        case UInt8(ascii: "u"):
            switch try codeUnit(at) {
            case 0xD800...0xDBFF:
                guard at + 7 < bytes.count, bytes[at + 6] == UInt8(ascii: "\\"),
                    bytes[at + 7] == UInt8(ascii: "u"),
                    try (0xDC00...0xDFFF).contains(codeUnit(at + 6))
                else { throw JSONFault(.loneSurrogate, at: at) }
                at += 12
            case 0xDC00...0xDFFF: throw JSONFault(.loneSurrogate, at: at)
            default: at += 6
            }
        default: throw JSONFault(.invalidEscape, at: at)
        }
    }

    private func codeUnit(_ escape: Int) throws(JSONFault) -> UInt32 {
        guard escape + 6 <= bytes.count else { throw JSONFault(.unexpectedEnd, at: bytes.count) }
        guard let unit = JSONStringBytes.codeUnit(escape, in: bytes) else {
            throw JSONFault(.invalidEscape, at: escape)
        }
        return unit
    }

    private mutating func number() throws(JSONFault) {
        let start = at
        var kind = JSONEntry.Kind.integer
        if bytes[at] == UInt8(ascii: "-") { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
            at += 1
            if at < bytes.count, isDigit(bytes[at]) { throw JSONFault(.invalidNumber, at: at) }
        } else {
            try digits()
        }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            kind = .real
            at += 1
            try digits()
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            kind = .real
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") {
                at += 1
            }
            try digits()
        }
        countInContainer()
        append(kind, from: start, length: at - start)
    }

    /// Steps over one digit or more.
    private mutating func digits() throws(JSONFault) {
        guard at < bytes.count else { throw JSONFault(.unexpectedEnd, at: at) }
        guard isDigit(bytes[at]) else { throw JSONFault(.invalidNumber, at: at) }
        while at < bytes.count, isDigit(bytes[at]) { at += 1 }
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    private mutating func word(_ word: StaticString, _ kind: JSONEntry.Kind) throws(JSONFault) {
        let start = at
        for index in 0..<word.utf8CodeUnitCount {
            guard at < bytes.count else { throw JSONFault(.unexpectedEnd, at: at) }
            guard bytes[at] == word.utf8Start[index] else {
                throw JSONFault(.unexpectedByte, at: at)
            }
            at += 1
        }
        countInContainer()
        append(kind, from: start, length: at - start)
    }

    /// The byte after white space, which stays to be read.
    private mutating func nextByte() throws(JSONFault) -> UInt8 {
        skipSpace()
        guard at < bytes.count else { throw JSONFault(.unexpectedEnd, at: at) }
        return bytes[at]
    }

    private mutating func skipSpace() {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0A, 0x0D: at += 1
            default: return
            }
        }
    }
}
