/// What `Accept` says about the types that are served (RFC 9110 12.5.1).
///
/// The most specific range that fits a type decides about it. What is no media range is passed
/// over: a client that writes nonsense is served what a client that writes nothing is.
struct AcceptedTypes {
    /// What the header says about one type.
    private struct Mention {
        /// 1 for `*/*`, 2 for `text/*`, 3 for `text/plain`; 0 if nothing fits.
        var specificity = 0
        /// The weight in thousandths.
        var quality = 0

        mutating func take(_ specificity: Int, _ quality: Int) {
            if specificity > self.specificity {
                self = Mention(specificity: specificity, quality: quality)
            } else if specificity == self.specificity {
                self.quality = max(self.quality, quality)
            }
        }

        func isBetter(than other: Mention) -> Bool {
            quality > other.quality
                || quality == other.quality && quality > 0 && specificity > other.specificity
        }
    }

    private var json = Mention()
    private var text = Mention()
    private var eventStream = Mention()
    private var openMetrics = Mention()
    private var hasRange = false

    /// The type with the highest weight; of equals the one that is named and not just covered by
    /// an asterisk, and then JSON.
    var preference: RequestHead.Preference {
        guard hasRange else { return .json }
        var preference = RequestHead.Preference.nothing
        var best = Mention()
        func consider(_ type: RequestHead.Preference, _ mention: Mention) {
            guard mention.isBetter(than: best) else { return }
            preference = type
            best = mention
        }
        consider(.json, json)
        consider(.text, text)
        consider(.eventStream, eventStream)
        consider(.openMetrics, openMetrics)
        return preference
    }

    /// Takes one field's value; several fields count as one.
    mutating func take(_ value: UnsafeRawBufferPointer) {
        var ranges = Pieces(of: value, separator: UInt8(ascii: ","))
        while let range = ranges.next() {
            take(range: range)
        }
    }

    private mutating func take(range: UnsafeRawBufferPointer) {
        var parts = Pieces(of: range, separator: UInt8(ascii: ";"))
        guard let type = parts.next(), let slash = type.firstIndex(of: UInt8(ascii: "/")),
            slash > 0, slash + 1 < type.count
        else { return }
        var quality = 1000
        while let parameter = parts.next() {
            guard parameter.count >= 2, parameter[0] | 0x20 == UInt8(ascii: "q"),
                parameter[1] == UInt8(ascii: "=")
            else { continue }
            guard let weight = AcceptedTypes.weight(parameter.dropFirst(2)) else { return }
            quality = weight
        }
        hasRange = true
        func mentions(_ name: StaticString) -> Bool { ASCII.equalsIgnoringCase(type, name) }
        if mentions("*/*") {
            json.take(1, quality)
            text.take(1, quality)
            eventStream.take(1, quality)
            openMetrics.take(1, quality)
        } else if mentions("application/*") {
            json.take(2, quality)
            openMetrics.take(2, quality)
        } else if mentions("text/*") {
            text.take(2, quality)
            eventStream.take(2, quality)
        } else if mentions("application/json") {
            json.take(3, quality)
        } else if mentions("text/plain") {
            text.take(3, quality)
        } else if mentions("text/event-stream") {
            eventStream.take(3, quality)
        } else if mentions("application/openmetrics-text") {
            openMetrics.take(3, quality)
        }
    }

    /// `0`, `1`, and up to three decimals, in thousandths.
    private static func weight(_ text: Slice<UnsafeRawBufferPointer>) -> Int? {
        guard let first = text.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1")
        else { return nil }
        var weight = Int(first - UInt8(ascii: "0")) * 1000
        let rest = text.dropFirst()
        guard let point = rest.first else { return weight }
        guard point == UInt8(ascii: "."), rest.count <= 4 else { return nil }
        var scale = 100
        for digit in rest.dropFirst() {
            guard ASCII.isDigit(digit) else { return nil }
            weight += Int(digit - UInt8(ascii: "0")) * scale
            scale /= 10
        }
        return weight <= 1000 ? weight : nil
    }

    /// What separators part, blanks around it taken off; a separator in quotes parts nothing.
    private struct Pieces {
        private let bytes: UnsafeRawBufferPointer
        private let separator: UInt8
        private var position = 0

        init(of bytes: UnsafeRawBufferPointer, separator: UInt8) {
            self.bytes = bytes
            self.separator = separator
        }

        mutating func next() -> UnsafeRawBufferPointer? {
            guard position <= bytes.count else { return nil }
            var start = position
            var isQuoted = false
            while position < bytes.count, isQuoted || bytes[position] != separator {
                if bytes[position] == UInt8(ascii: "\"") { isQuoted.toggle() }
                // The byte after a backslash is not a quote's end.
                if isQuoted, bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count {
                    position += 1
                }
                position += 1
            }
            var end = position
            position += 1
            while start < end, ASCII.isBlank(bytes[start]) { start += 1 }
            while end > start, ASCII.isBlank(bytes[end - 1]) { end -= 1 }
            return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
        }
    }
}
