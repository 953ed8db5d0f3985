/// Writes one JSON value into a sink, commas included.
///
/// Text is written as UTF-8; quotes, backslashes and characters below U+0020 are escaped, and
/// nothing else is. What does not make sense (a key in an array, a number that is not finite) is
/// the caller's mistake and traps.
package struct JSONWriter<Sink: ByteSink & ~Copyable>: ~Copyable {
    private var sink: Sink

    /// Whether something stands before the next value or key that has to be parted from it.
    private var needsComma = false

    /// How many containers are open.
    private var depth = 0

    /// Starts a value at the end of `sink`.
    package init(into sink: consuming Sink) {
        self.sink = sink
    }

    /// The sink, with the whole value in it.
    package consuming func finish() -> Sink {
        precondition(depth == 0, "JSON was finished with \(depth) containers open")
        return sink
    }

    // MARK: Containers

    package mutating func beginObject() { open(UInt8(ascii: "{")) }
    package mutating func endObject() { close(UInt8(ascii: "}")) }
    package mutating func beginArray() { open(UInt8(ascii: "[")) }
    package mutating func endArray() { close(UInt8(ascii: "]")) }

    private mutating func open(_ bracket: UInt8) {
        separate()
        sink.append(bracket)
        needsComma = false
        depth += 1
    }

    private mutating func close(_ bracket: UInt8) {
        precondition(depth > 0, "JSON has no container to end here")
        depth -= 1
        sink.append(bracket)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { sink.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    /// Writes the name of the member whose value comes next.
    package mutating func key(_ key: StaticString) {
        string(key)
        sink.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// Writes the name of the member whose value comes next.
    @_disfavoredOverload
    package mutating func key(_ key: String) {
        string(key)
        sink.append(UInt8(ascii: ":"))
        needsComma = false
    }

    // MARK: Values

    package mutating func string(_ text: StaticString) {
        separate()
        let bytes = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        quote(bytes, isUTF8: true)
    }

    @_disfavoredOverload
    package mutating func string(_ text: String) {
        separate()
        var text = text
        text.withUTF8 { quote(UnsafeRawBufferPointer($0), isUTF8: true) }
    }

    /// Writes the secret's bytes as a string, without a copy in between.
    ///
    /// A byte that belongs to no UTF-8 character becomes `\ufffd`, each for itself: the output is
    /// JSON whatever the secret is.
    package mutating func secret(_ secret: Secret) {
        separate()
        secret.withBytes { quote($0, isUTF8: false) }
    }

    package mutating func number(_ number: Int64) {
        separate()
        // 19 digits and a sign.
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var start = 20
            var left = number.magnitude
            repeat {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(left % 10)
                left /= 10
            } while left > 0
            if number < 0 {
                start -= 1
                digits[start] = UInt8(ascii: "-")
            }
            sink.append(contentsOf: UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }

    /// Writes the shortest decimal that reads back as `number`, which has to be finite.
    package mutating func number(_ number: Double) {
        precondition(number.isFinite, "JSON has no infinity and no NaN")
        separate()
        sink.append(number.description)
    }

    package mutating func bool(_ bool: Bool) {
        separate()
        sink.append(bool ? "true" : "false" as StaticString)
    }

    package mutating func null() {
        separate()
        sink.append("null" as StaticString)
    }

    /// Writes a value that is JSON already, unchecked.
    package mutating func raw(_ json: UnsafeRawBufferPointer) {
        separate()
        sink.append(contentsOf: json)
    }

    private mutating func quote(_ bytes: UnsafeRawBufferPointer, isUTF8: Bool) {
        sink.append(UInt8(ascii: "\""))
        var start = 0
        var at = 0
        while true {
            at = PlainRun.end(from: at, in: bytes, allowingNonASCII: isUTF8)
            if !isUTF8, at < bytes.count, bytes[at] >= 0x80,
                let length = UTF8Sequence.length(at: at, in: bytes)
            {
                at += length
                continue
            }
            if at > start {
                sink.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<at]))
            }
            guard at < bytes.count else { break }
            escape(bytes[at])
            at += 1
            start = at
        }
        sink.append(UInt8(ascii: "\""))
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): sink.append(#"\""# as StaticString)
        case UInt8(ascii: "\\"): sink.append(#"\\"# as StaticString)
        case 0x08: sink.append(#"\b"# as StaticString)
        case 0x09: sink.append(#"\t"# as StaticString)
        case 0x0A: sink.append(#"\n"# as StaticString)
        case 0x0C: sink.append(#"\f"# as StaticString)
        case 0x0D: sink.append(#"\r"# as StaticString)
        case 0x00...0x1F:
            sink.append(byte < 0x10 ? #"\u000"# : #"\u001"# as StaticString)
            let digit = byte & 0x0F
            sink.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        default: sink.append(#"\ufffd"# as StaticString)
        }
    }
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

    /// Writes the member, or nothing if the value is nil.
    package mutating func member(_ key: StaticString, ifPresent value: String?) {
        if let value { member(key, value) }
    }

    /// Writes the member, or nothing if the value is nil.
    package mutating func member(_ key: StaticString, ifPresent value: Int64?) {
        if let value { member(key, value) }
    }

    /// Writes the member, or nothing if the value is nil.
    package mutating func member(_ key: StaticString, ifPresent value: Bool?) {
        if let value { member(key, value) }
    }

    /// Writes the member, or nothing if the value is nil.
    package mutating func member(_ key: StaticString, ifPresent value: Secret?) {
        if let value { member(key, value) }
    }
}
