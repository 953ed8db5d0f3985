/// Writes one JSON document to a sink, with the commas in the right places.
///
/// Text is written as UTF-8. What is escaped: quotes, backslashes, and control characters (C0, DEL
/// and C1, for documents are printed on terminals).
package struct JSONWriter<Sink: ByteSink & ~Copyable>: ~Copyable {
    private var sink: Sink
    private var depth = 0
    private var needsComma = false

    package init(into sink: consuming Sink) {
        self.sink = sink
    }

    /// The sink, with the document in it; every container has to be ended.
    package consuming func finish() -> Sink {
        precondition(depth == 0, "a JSON document was finished inside a container")
        return sink
    }

    package mutating func beginObject() {
        begin(UInt8(ascii: "{"))
    }

    package mutating func endObject() {
        end(UInt8(ascii: "}"))
    }

    package mutating func beginArray() {
        begin(UInt8(ascii: "["))
    }

    package mutating func endArray() {
        end(UInt8(ascii: "]"))
    }

    /// Begins a member; its value comes next.
    package mutating func key(_ key: StaticString) {
        string(key)
        sink.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// Begins a member; its value comes next.
    @_disfavoredOverload
    package mutating func key(_ key: String) {
        string(key)
        sink.append(UInt8(ascii: ":"))
        needsComma = false
    }

    package mutating func string(_ text: StaticString) {
        separate()
        quote(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @_disfavoredOverload
    package mutating func string(_ text: String) {
        separate()
        var text = text
        text.withUTF8 { quote(UnsafeRawBufferPointer($0)) }
    }

    /// The secret's bytes as a string; each byte that is not part of valid UTF-8 becomes U+FFFD.
    package mutating func secret(_ secret: Secret) {
        separate()
        secret.withBytes { quote($0) }
    }

    package mutating func number(_ value: Int64) {
        separate()
        // 19 digits and a sign.
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var first = digits.count
            var left = value.magnitude
            repeat {
                first -= 1
                digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: left % 10)
                left /= 10
            } while left > 0
            if value < 0 {
                first -= 1
                digits[first] = UInt8(ascii: "-")
            }
            sink.append(contentsOf: UnsafeRawBufferPointer(rebasing: digits[first...]))
        }
    }

    /// A finite number, in the shortest form that reads back as the same.
    package mutating func number(_ value: Double) {
        precondition(value.isFinite, "JSON has no number that is not finite")
        separate()
        sink.append(value.description)
    }

    package mutating func bool(_ value: Bool) {
        separate()
        sink.append(value ? "true" as StaticString : "false")
    }

    package mutating func null() {
        separate()
        sink.append("null" as StaticString)
    }

    /// A value that is rendered already; it has to be valid JSON.
    package mutating func raw(_ value: UnsafeRawBufferPointer) {
        separate()
        sink.append(contentsOf: value)
    }

    private mutating func begin(_ bracket: UInt8) {
        separate()
        sink.append(bracket)
        depth += 1
        needsComma = false
    }

    private mutating func end(_ bracket: UInt8) {
        precondition(depth > 0, "a JSON container was ended that was not begun")
        sink.append(bracket)
        depth -= 1
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { sink.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func quote(_ bytes: UnsafeRawBufferPointer) {
        sink.append(UInt8(ascii: "\""))
        var runStart = 0
        var position = 0
        while position < bytes.count {
            let byte = bytes[position]
            let isPlain =
                byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"")
                && byte != UInt8(ascii: "\\")
            if isPlain {
                position += 1
                continue
            }
            let length = UTF8Sequence.length(in: bytes, at: position)
            let isC1 = length == 2 && byte == 0xC2 && bytes[position + 1] < 0xA0
            if length >= 2, !isC1 {
                position += length
                continue
            }
            if position > runStart {
                sink.append(
                    contentsOf: UnsafeRawBufferPointer(rebasing: bytes[runStart..<position]))
            }
            if length == 0 {
                sink.append("\u{FFFD}" as StaticString)
                position += 1
            } else {
                escape(isC1 ? bytes[position + 1] : byte)
                position += length
            }
            runStart = position
        }
        if position > runStart {
            sink.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[runStart..<position]))
        }
        sink.append(UInt8(ascii: "\""))
    }

    private mutating func escape(_ character: UInt8) {
        switch character {
        case UInt8(ascii: "\""): sink.append(#"\""# as StaticString)
        case UInt8(ascii: "\\"): sink.append(#"\\"# as StaticString)
        case 0x08: sink.append(#"\b"# as StaticString)
        case 0x09: sink.append(#"\t"# as StaticString)
        case 0x0A: sink.append(#"\n"# as StaticString)
        case 0x0C: sink.append(#"\f"# as StaticString)
        case 0x0D: sink.append(#"\r"# as StaticString)
        default:
            sink.append(#"\u00"# as StaticString)
            sink.append(lowercaseHexDigit(character >> 4))
            sink.append(lowercaseHexDigit(character & 0xF))
        }
    }
}

private func lowercaseHexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
}

// MARK: - Members

extension JSONWriter where Sink: ~Copyable {
    package mutating func member(_ key: StaticString, _ value: StaticString) {
        self.key(key)
        string(value)
    }

    @_disfavoredOverload
    package mutating func member(_ key: StaticString, _ value: String) {
        self.key(key)
        string(value)
    }

    package mutating func member(_ key: StaticString, _ value: Int64) {
        self.key(key)
        number(value)
    }

    package mutating func member(_ key: StaticString, _ value: Bool) {
        self.key(key)
        bool(value)
    }

    package mutating func member(_ key: StaticString, _ value: Secret) {
        self.key(key)
        secret(value)
    }

    /// Writes nothing if there is no value.
    package mutating func member(_ key: StaticString, ifPresent value: String?) {
        if let value { member(key, value) }
    }

    /// Writes nothing if there is no value.
    package mutating func member(_ key: StaticString, ifPresent value: Int64?) {
        if let value { member(key, value) }
    }

    /// Writes nothing if there is no value.
    package mutating func member(_ key: StaticString, ifPresent value: Bool?) {
        if let value { member(key, value) }
    }

    /// Writes nothing if there is no value.
    package mutating func member(_ key: StaticString, ifPresent value: Secret?) {
        if let value { member(key, value) }
    }
}
