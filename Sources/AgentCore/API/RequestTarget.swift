/// A request's path and query, taken apart when asked: a view, valid only while the bytes are.
package struct RequestTarget {
    private let pathBytes: UnsafeRawBufferPointer
    private let queryBytes: UnsafeRawBufferPointer

    package init(path: UnsafeRawBufferPointer, query: UnsafeRawBufferPointer?) {
        pathBytes = path
        queryBytes = query ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// The target of `head`, which was parsed from `bytes`.
    package init(_ head: RequestHead, in bytes: UnsafeRawBufferPointer) {
        self.init(
            path: UnsafeRawBufferPointer(rebasing: bytes[head.path]),
            query: head.query.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) })
    }

    /// What stands between the slashes of the path.
    ///
    /// `/v1/token` has two segments, `/v1/token/` a third that is empty, `/` an empty one.
    package var segments: Segments {
        let isRooted = pathBytes.first == UInt8(ascii: "/")
        return Segments(
            Pieces(
                of: isRooted
                    ? UnsafeRawBufferPointer(rebasing: pathBytes.dropFirst()) : pathBytes,
                separator: UInt8(ascii: "/")))
    }

    /// The pairs of the query in order; of `a=1&b&&c=` they are `a` 1, `b` nil and `c` empty.
    package var items: Items { Items(Pieces(of: queryBytes, separator: UInt8(ascii: "&"))) }

    package struct Segments: Sequence, IteratorProtocol {
        private var pieces: Pieces

        fileprivate init(_ pieces: Pieces) {
            self.pieces = pieces
        }

        package mutating func next() -> EncodedText? {
            pieces.next().map(EncodedText.init)
        }
    }

    package struct Items: Sequence, IteratorProtocol {
        private var pieces: Pieces

        fileprivate init(_ pieces: Pieces) {
            self.pieces = pieces
        }

        /// `value` is nil if there is no `=`.
        package mutating func next() -> (name: EncodedText, value: EncodedText?)? {
            while let piece = pieces.next() {
                guard !piece.isEmpty else { continue }
                guard let sign = piece.firstIndex(of: UInt8(ascii: "=")) else {
                    return (EncodedText(piece), nil)
                }
                return (
                    EncodedText(UnsafeRawBufferPointer(rebasing: piece[..<sign])),
                    EncodedText(UnsafeRawBufferPointer(rebasing: piece[(sign + 1)...]))
                )
            }
            return nil
        }
    }

    fileprivate struct Pieces {
        private let bytes: UnsafeRawBufferPointer
        private let separator: UInt8
        private var position = 0

        init(of bytes: UnsafeRawBufferPointer, separator: UInt8) {
            self.bytes = bytes
            self.separator = separator
        }

        mutating func next() -> UnsafeRawBufferPointer? {
            guard position <= bytes.count else { return nil }
            let start = position
            while position < bytes.count, bytes[position] != separator { position += 1 }
            defer { position += 1 }
            return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
        }
    }
}

/// Percent-encoded text (RFC 3986 2.1): a view, valid only while the bytes are.
///
/// A plus is a plus; only forms of web pages mean a space by it.
package struct EncodedText {
    private let bytes: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    package var isEmpty: Bool { bytes.isEmpty }

    /// Why text cannot be decoded.
    package enum Malformed: Error, Equatable, Sendable, CustomStringConvertible {
        case badEscape
        case nul
        case notUTF8

        package var description: String {
            switch self {
            case .badEscape: "a % is not followed by two hexadecimal digits"
            case .nul: "%00 is not allowed"
            case .notUTF8: "what is percent-encoded is not UTF-8"
            }
        }
    }

    /// Whether the text, decoded, is `other`; false if it cannot be decoded.
    package static func == (text: EncodedText, other: StaticString) -> Bool {
        var (index, matched) = (0, 0)
        while index < text.bytes.count {
            guard matched < other.utf8CodeUnitCount,
                let (byte, length) = text.decoded(at: index),
                byte == other.utf8Start[matched]
            else { return false }
            index += length
            matched += 1
        }
        return matched == other.utf8CodeUnitCount
    }

    /// The decoded text.
    package func decoded() throws(Malformed) -> String {
        guard bytes.contains(UInt8(ascii: "%")) else {
            guard let text = String(validating: bytes, as: UTF8.self) else { throw .notUTF8 }
            return text
        }
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard let (byte, length) = decoded(at: index) else { throw .badEscape }
            guard byte != 0 else { throw .nul }
            plain.append(byte)
            index += length
        }
        guard let text = String(validating: plain, as: UTF8.self) else { throw .notUTF8 }
        return text
    }

    /// A number of at most ``Limits/numberDigits`` and nothing else; nil otherwise.
    package var wholeNumber: Int64? {
        guard (1...Limits.numberDigits).contains(bytes.count) else { return nil }
        var number: Int64 = 0
        for byte in bytes {
            guard ASCII.isDigit(byte) else { return nil }
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        return number
    }

    private func decoded(at index: Int) -> (byte: UInt8, length: Int)? {
        guard bytes[index] == UInt8(ascii: "%") else { return (bytes[index], 1) }
        guard index + 2 < bytes.count, let high = hexDigit(bytes[index + 1]),
            let low = hexDigit(bytes[index + 2])
        else { return nil }
        return (UInt8(high << 4 | low), 3)
    }
}
