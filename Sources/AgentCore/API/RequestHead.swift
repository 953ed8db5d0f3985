/// The head of one HTTP/1.1 request (RFC 9112), as far as anything depends on it.
///
/// What two parsers could read in two ways is refused, not guessed: there is no proxy between a
/// client and this socket, so no honest client is lost. Nothing is allocated.
package struct RequestHead: Equatable, Sendable {
    package enum Method: Equatable, Sendable {
        case get, head, post, delete, put, patch, options
        /// A method that no resource here takes.
        case other
    }

    package enum Version: Equatable, Sendable {
        case http10
        /// 1.1, or a later 1.x, which is to be treated as 1.1.
        case http11
    }

    /// What the client would rather have, of what there is.
    package enum Preference: Equatable, Sendable {
        case json, text, eventStream, openMetrics
        /// There is an `Accept`, and it takes none of these.
        case nothing
    }

    package let method: Method
    package let version: Version

    /// Where in the buffer the path is, still encoded; empty means `/` (`http://canopyd`).
    package let path: Range<Int>

    /// Where in the buffer the query is, without its `?`, still encoded.
    package let query: Range<Int>?

    /// Bytes of the body that follows, 0 to ``Limits/requestBodyBytes``.
    package let contentLength: Int

    /// Whether the connection stays open after the answer.
    package let keepAlive: Bool

    /// Whether the client holds its body back until it is told to go on.
    package let expectsContinue: Bool

    package let accept: Preference

    /// Whether the request came from a web page.
    ///
    /// It has an `Origin` or a `Referer`, or names a host that is none of ours; programs on this
    /// machine have no reason to send either.
    package let fromBrowser: Bool

    package enum Progress: Equatable, Sendable {
        /// The head is not over; nothing in it is wrong so far.
        case incomplete
        /// `length` is where the body starts, in bytes from the buffer's start.
        case head(RequestHead, length: Int)
        /// The connection has to be closed after the answer: where the next request starts is not
        /// known.
        case fault(RequestFault)
    }

    /// Parses the head at the start of `bytes`, all that came so far.
    ///
    /// `searched` is how many of them an earlier call found incomplete; they are not searched again.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, from searched: Int = 0
    ) -> Progress {
        do throws(RequestFault) {
            guard let length = try end(of: bytes, from: searched) else {
                return .incomplete
            }
            var pass = RequestHeadPass(
                UnsafeRawBufferPointer(rebasing: bytes[..<length]))
            return .head(try pass.head(), length: length)
        } catch {
            return .fault(error)
        }
    }

    /// Where the empty line ends that ends the head.
    ///
    /// Looks at each byte of `bytes` from `searched` on once. A fault that shows at once is told at
    /// once: a client that ends its lines with bare LF would otherwise wait for ever.
    private static func end(
        of bytes: UnsafeRawBufferPointer, from searched: Int
    ) throws(RequestFault) -> Int? {
        let start = try emptyLines(bytes)
        let limit = min(bytes.count, Limits.requestHeadBytes)
        var position = max(start, min(searched, bytes.count) - 1)
        while position < limit {
            let byte = bytes[position]
            if byte >= 0x20, byte != 0x7F {
                position += 1
                continue
            }
            switch byte {
            case UInt8(ascii: "\n"):
                guard position > start, bytes[position - 1] == UInt8(ascii: "\r") else {
                    throw .malformed(.bareLineFeed)
                }
                if position >= start + 3, bytes[position - 2] == UInt8(ascii: "\n") {
                    return position + 1
                }
            case UInt8(ascii: "\r"):
                if position + 1 < bytes.count, bytes[position + 1] != UInt8(ascii: "\n") {
                    throw .malformed(.bareCarriageReturn)
                }
            case UInt8(ascii: "\t"):
                break
            default:
                throw .malformed(.controlByte)
            }
            position += 1
        }
        guard bytes.count < Limits.requestHeadBytes else { throw .headTooLarge }
        return nil
    }

    /// Where the empty lines end that may stand before a request.
    fileprivate static func emptyLines(
        _ bytes: UnsafeRawBufferPointer
    ) throws(RequestFault) -> Int {
        var position = 0
        while position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\r"),
            bytes[position + 1] == UInt8(ascii: "\n")
        {
            position += 2
            guard position <= 2 * Limits.requestEmptyLines else {
                throw .malformed(.emptyLines)
            }
        }
        return position
    }
}

/// The pass over a head that is all there.
private struct RequestHeadPass {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    private var fields = 0
    private var contentLength: Int?
    private var hasHost = false
    private var isForeign = false
    private var wantsClose = false
    private var expectsContinue = false
    private var hasOrigin = false
    private var accept = AcceptedTypes()

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    mutating func head() throws(RequestFault) -> RequestHead {
        position = try RequestHead.emptyLines(bytes)
        let method = try method()
        let target = try target()
        let version = try version()
        let (path, query) = try split(target, method)
        while try field() {}
        let length = contentLength ?? 0
        guard length <= Limits.requestBodyBytes else { throw .bodyTooLarge(length) }
        return RequestHead(
            method: method, version: version, path: path, query: query, contentLength: length,
            // A 1.0 client would have to be told that the connection is kept; none needs it.
            keepAlive: !wantsClose && version == .http11,
            // To a 1.0 client an interim answer would be the answer.
            expectsContinue: expectsContinue && version == .http11 && length > 0,
            accept: accept.preference, fromBrowser: hasOrigin || isForeign)
    }

    // MARK: The request line

    private mutating func method() throws(RequestFault) -> RequestHead.Method {
        let start = position
        while isTokenByte(bytes[position]) { position += 1 }
        guard position > start, bytes[position] == UInt8(ascii: " ") else {
            throw .malformed(.method)
        }
        let name = start..<position
        position += 1
        switch name.count {
        case 3: return equals(name, "GET") ? .get : equals(name, "PUT") ? .put : .other
        case 4: return equals(name, "POST") ? .post : equals(name, "HEAD") ? .head : .other
        case 5: return equals(name, "PATCH") ? .patch : .other
        case 6: return equals(name, "DELETE") ? .delete : .other
        case 7: return equals(name, "OPTIONS") ? .options : .other
        default: return .other
        }
    }

    /// The target, with the space after it read.
    private mutating func target() throws(RequestFault) -> Range<Int> {
        let start = position
        while (0x21...0x7E).contains(bytes[position]) { position += 1 }
        guard position > start, bytes[position] == UInt8(ascii: " ") else {
            // An old `GET /` without a version, spaces, or bytes that have to be encoded.
            throw .malformed(bytes[position] >= 0x80 ? .target : .requestLine)
        }
        position += 1
        return start..<position - 1
    }

    private mutating func version() throws(RequestFault) -> RequestHead.Version {
        let start = position
        while bytes[position] != UInt8(ascii: "\r") { position += 1 }
        guard position - start == 8, equals(start..<start + 5, "HTTP/"),
            isDigit(bytes[start + 5]), bytes[start + 6] == UInt8(ascii: "."),
            isDigit(bytes[start + 7])
        else { throw .malformed(.requestLine) }
        try endLine()
        guard bytes[start + 5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }

    private mutating func split(
        _ target: Range<Int>, _ method: RequestHead.Method
    ) throws(RequestFault) -> (path: Range<Int>, query: Range<Int>?) {
        var start = target.lowerBound
        if bytes[start] == UInt8(ascii: "*"), target.count == 1 {
            guard method == .options else { throw .malformed(.target) }
            return (target, nil)
        }
        if bytes[start] != UInt8(ascii: "/") {
            guard target.count > 7, equalsIgnoringCase(start..<start + 7, "http://") else {
                throw .malformed(.target)
            }
            let authority = start + 7
            start = authority
            while start < target.upperBound, bytes[start] != UInt8(ascii: "/"),
                bytes[start] != UInt8(ascii: "?")
            {
                guard bytes[start] != UInt8(ascii: "@") else { throw .malformed(.target) }
                start += 1
            }
            guard start > authority else { throw .malformed(.target) }
            try noteHost(authority..<start)
        }
        var query: Range<Int>?
        for index in start..<target.upperBound {
            // A fragment stays with the client.
            guard bytes[index] != UInt8(ascii: "#") else { throw .malformed(.target) }
            if query == nil, bytes[index] == UInt8(ascii: "?") {
                query = index + 1..<target.upperBound
            }
        }
        return (start..<(query.map { $0.lowerBound - 1 } ?? target.upperBound), query)
    }

    // MARK: The fields

    /// Reads one line; false for the empty one.
    private mutating func field() throws(RequestFault) -> Bool {
        let start = position
        switch bytes[position] {
        case UInt8(ascii: "\r"):
            return false
        case UInt8(ascii: " "), UInt8(ascii: "\t"):
            throw .malformed(.foldedLine)
        default:
            break
        }
        while isTokenByte(bytes[position]) { position += 1 }
        let name = start..<position
        guard bytes[position] == UInt8(ascii: ":"), !name.isEmpty else {
            let isSpace =
                bytes[position] == UInt8(ascii: " ") || bytes[position] == UInt8(ascii: "\t")
            throw .malformed(isSpace ? .spaceBeforeColon : .fieldName)
        }
        position += 1
        let valueStart = position
        while bytes[position] != UInt8(ascii: "\r") {
            guard bytes[position] >= 0x20 || bytes[position] == UInt8(ascii: "\t"),
                bytes[position] != 0x7F
            else { throw .malformed(.controlByte) }
            position += 1
        }
        let value = trimmed(valueStart..<position)
        try endLine()
        fields += 1
        guard fields <= Limits.requestFields else { throw .tooManyFields }
        try take(name, value)
        return true
    }

    /// Reads CR LF, at a CR.
    private mutating func endLine() throws(RequestFault) {
        guard bytes[position + 1] == UInt8(ascii: "\n") else {
            throw .malformed(.bareCarriageReturn)
        }
        position += 2
    }

    private mutating func take(
        _ name: Range<Int>, _ value: Range<Int>
    ) throws(RequestFault) {
        switch name.count {
        case 4 where equalsIgnoringCase(name, "host"):
            guard !hasHost else { throw .malformed(.repeatedHost) }
            hasHost = true
            try noteHost(value)
        case 6 where equalsIgnoringCase(name, "accept"):
            accept.take(UnsafeRawBufferPointer(rebasing: bytes[value]))
        case 6 where equalsIgnoringCase(name, "origin"):
            hasOrigin = true
        case 6 where equalsIgnoringCase(name, "expect"):
            guard equalsIgnoringCase(value, "100-continue") else { throw .unsupportedExpectation }
            expectsContinue = true
        case 7 where equalsIgnoringCase(name, "referer"):
            hasOrigin = true
        case 10 where equalsIgnoringCase(name, "connection"):
            takeConnection(value)
        case 14 where equalsIgnoringCase(name, "content-length"):
            guard contentLength == nil else { throw .malformed(.repeatedContentLength) }
            contentLength = try length(value)
        case 17 where equalsIgnoringCase(name, "transfer-encoding"):
            throw .malformed(.transferEncoding)
        default:
            break
        }
    }

    private func length(_ value: Range<Int>) throws(RequestFault) -> Int {
        guard (1...Limits.numberDigits).contains(value.count) else {
            throw .malformed(.contentLength)
        }
        var length = 0
        for index in value {
            guard isDigit(bytes[index]) else { throw .malformed(.contentLength) }
            length = length * 10 + Int(bytes[index] - UInt8(ascii: "0"))
        }
        return length
    }

    private mutating func takeConnection(_ value: Range<Int>) {
        var start = value.lowerBound
        for index in value.lowerBound...value.upperBound {
            guard index == value.upperBound || bytes[index] == UInt8(ascii: ",") else { continue }
            let option = trimmed(start..<index)
            if equalsIgnoringCase(option, "close") { wantsClose = true }
            start = index + 1
        }
    }

    /// Remembers a host that is none of ours; which port stands after it does not matter, as long
    /// as it can be one.
    private mutating func noteHost(_ value: Range<Int>) throws(RequestFault) {
        var end = value.upperBound
        while end > value.lowerBound, isDigit(bytes[end - 1]) { end -= 1 }
        let hasPort = end > value.lowerBound && bytes[end - 1] == UInt8(ascii: ":")
        if hasPort {
            var port = 0
            for index in end..<value.upperBound {
                port = port * 10 + Int(bytes[index] - UInt8(ascii: "0"))
                guard port <= Int(UInt16.max) else { throw .malformed(.port) }
            }
        }
        let host = value.lowerBound..<(hasPort ? end - 1 : value.upperBound)
        if !host.isEmpty, !equalsIgnoringCase(host, "canopyd"),
            !equalsIgnoringCase(host, "localhost")
        {
            isForeign = true
        }
    }

    // MARK: Bytes

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    private func equals(_ range: Range<Int>, _ text: StaticString) -> Bool {
        ASCII.equals(UnsafeRawBufferPointer(rebasing: bytes[range]), text)
    }

    private func equalsIgnoringCase(_ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: bytes[range]), lowercase)
    }

    private func isBlank(_ byte: UInt8) -> Bool { ASCII.isBlank(byte) }
    private func isDigit(_ byte: UInt8) -> Bool { ASCII.isDigit(byte) }
    private func isTokenByte(_ byte: UInt8) -> Bool { ASCII.isTokenByte(byte) }
}
