/// The status line and the header fields of an HTTP/1.1 answer, as far as canopyctl needs them.
///
/// canopyd sends no chunked bodies outside of event streams: a body has a `Content-Length`.
package struct ResponseHead: Equatable, Sendable {
    /// 100 to 599.
    package let status: Int

    /// Bytes of the body; nil if the answer does not say.
    package let contentLength: Int?

    /// Where in the buffer the content type is, without its parameters; empty if there is none.
    package let mediaType: Range<Int>

    /// Bytes of the head itself, its empty line included.
    package let byteCount: Int

    /// Parses the head at the start of `bytes`; nil as long as its end has not arrived.
    ///
    /// Throws once it cannot become an answer any more, or is longer than
    /// ``Limits/responseHeadBytes``.
    package static func parse(_ bytes: UnsafeRawBufferPointer) throws(Malformed) -> ResponseHead? {
        let searched = UnsafeRawBufferPointer(
            rebasing: bytes[..<min(bytes.count, Limits.responseHeadBytes)])
        // First, so that it does not depend on how the bytes came: an empty line in front, too, is
        // nothing that an answer starts with.
        guard startsLikeHTTP(bytes) else { throw .notHTTP }
        guard let end = endOfHead(searched) else {
            guard bytes.count < Limits.responseHeadBytes else { throw .headTooLarge }
            return nil
        }
        var rest = bytes[..<end]
        guard let first = nextLine(of: &rest), let status = status(first) else { throw .notHTTP }
        var contentLength: Int?
        var mediaType = 0..<0
        while let line = nextLine(of: &rest) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .badField }
            let name = UnsafeRawBufferPointer(rebasing: line[..<colon])
            let value = trim(line[(colon + 1)...])
            if ASCII.equalsIgnoringCase(name, "content-length") {
                guard let length = number(value), contentLength == nil || contentLength == length
                else { throw .badField }
                contentLength = length
            } else if ASCII.equalsIgnoringCase(name, "content-type") {
                let type = trim(value.prefix { $0 != UInt8(ascii: ";") })
                mediaType = type.startIndex..<type.endIndex
            } else if ASCII.equalsIgnoringCase(name, "transfer-encoding") {
                throw .transferEncoding
            }
        }
        return ResponseHead(
            status: status, contentLength: contentLength, mediaType: mediaType, byteCount: end)
    }

    /// Why bytes are not an answer that can be read.
    package enum Malformed: Error, Equatable, CustomStringConvertible {
        case notHTTP
        case headTooLarge
        case badField
        case transferEncoding

        package var description: String {
            switch self {
            case .notHTTP: return "the answer is not HTTP/1.1"
            case .headTooLarge:
                return "the answer's head has more than \(Limits.responseHeadBytes) bytes"
            case .badField: return "a header field of the answer makes no sense"
            case .transferEncoding: return "the answer has a transfer encoding"
            }
        }
    }

    /// Whether the answer in `bytes`, whose head this is, has the media type `name`, which is in lower
    /// case.
    package func hasMediaType(_ name: StaticString, in bytes: UnsafeRawBufferPointer) -> Bool {
        ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: bytes[mediaType]), name)
    }

    private static let version: StaticString = "HTTP/1.1 "

    private static func startsLikeHTTP(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let expected = UnsafeRawBufferPointer(
            start: version.utf8Start, count: version.utf8CodeUnitCount)
        let count = min(bytes.count, expected.count)
        return bytes[..<count].elementsEqual(expected[..<count])
    }

    private static func endOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in 3..<bytes.count where bytes[index] == UInt8(ascii: "\n") {
            if bytes[index - 1] == UInt8(ascii: "\r"), bytes[index - 2] == UInt8(ascii: "\n"),
                bytes[index - 3] == UInt8(ascii: "\r")
            {
                return index + 1
            }
        }
        return nil
    }

    /// Takes the next line that is not empty off `rest`.
    ///
    /// Not collected in an array: making its type costs a short-lived process more than all else
    /// that is done here.
    private static func nextLine(
        of rest: inout Slice<UnsafeRawBufferPointer>
    ) -> Slice<UnsafeRawBufferPointer>? {
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
            var line = rest[..<end]
            rest = rest[min(end + 1, rest.endIndex)...]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if !line.isEmpty { return line }
        }
        return nil
    }

    private static func status(_ line: Slice<UnsafeRawBufferPointer>) -> Int? {
        let digits = line.dropFirst(version.utf8CodeUnitCount).prefix(3)
        guard startsLikeHTTP(UnsafeRawBufferPointer(rebasing: line)), digits.count == 3,
            let status = number(digits), (100...599).contains(status)
        else { return nil }
        let rest = line[digits.endIndex...]
        guard rest.first == nil || rest.first == UInt8(ascii: " ") else { return nil }
        return status
    }

    /// Far above every limit of what it is for.
    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
        guard (1...Limits.numberDigits).contains(digits.count) else { return nil }
        var result = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            result = result * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return result
    }

    private static func trim(
        _ bytes: Slice<UnsafeRawBufferPointer>
    ) -> Slice<UnsafeRawBufferPointer> {
        var bytes = bytes
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return bytes
    }
}
