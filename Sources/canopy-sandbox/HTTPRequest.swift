internal import AgentCore

/// One request, whole.
struct HTTPRequest {
    let method: String
    /// The target without its query.
    let path: String
    /// Names in lower case; of several of one name, the last.
    let headers: [String: String]
    let body: [UInt8]
    let keepsAlive: Bool

    enum Parsed {
        /// More bytes are needed.
        case incomplete
        /// The request and how many bytes it took.
        case request(HTTPRequest, Int)
        /// It cannot be read: the status to say so with, and why.
        case refused(Int, String)
    }

    /// Looks for a request at the start of `bytes`.
    ///
    /// The subset that HTTP clients send to an API: no continuation lines, and bodies by
    /// `Content-Length` alone.
    static func parse(_ bytes: [UInt8]) -> Parsed {
        let searched = bytes.prefix(Limits.requestHeadBytes)
        guard let end = endOfHead(searched) else {
            return bytes.count >= Limits.requestHeadBytes
                ? .refused(431, "the head has over \(Limits.requestHeadBytes) bytes") : .incomplete
        }
        let lines = String(decoding: searched[..<end], as: UTF8.self)
            .split(separator: "\r\n", omittingEmptySubsequences: true)
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3, words[1].hasPrefix("/"),
            words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0"
        else { return .refused(400, "not a request line of HTTP/1.1") }

        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else {
                return .refused(400, "a header line without a name")
            }
            headers[line[..<colon].lowercased()] = trimmed(line[line.index(after: colon)...])
        }
        guard headers["transfer-encoding"] == nil else {
            return .refused(411, "a body comes with a Content-Length here")
        }
        var length = 0
        if let text = headers["content-length"] {
            guard let value = Int(text), value >= 0, text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 })
            else { return .refused(400, "Content-Length is not a number") }
            length = value
        }
        guard length <= Limits.requestBodyBytes else {
            return .refused(413, "the body has over \(Limits.requestBodyBytes) bytes")
        }
        guard bytes.count >= end + 4 + length else { return .incomplete }
        let connection = headers["connection"]?.lowercased()
        let request = HTTPRequest(
            method: String(words[0]), path: String(words[1].prefix { $0 != "?" }),
            headers: headers, body: Array(bytes[(end + 4)..<(end + 4 + length)]),
            keepsAlive: words[2] == "HTTP/1.1" ? connection != "close" : connection == "keep-alive")
        return .request(request, end + 4 + length)
    }

    /// Where the blank line begins that ends the head.
    private static func endOfHead(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in bytes.startIndex...(bytes.endIndex - 4)
        where bytes[index] == 13 && bytes[index + 1] == 10 && bytes[index + 2] == 13
            && bytes[index + 3] == 10
        {
            return index
        }
        return nil
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }

    /// The token after `Bearer`.
    var bearer: String? {
        guard let value = headers["authorization"] else { return nil }
        let words = value.split(separator: " ")
        return words.count == 2 && words[0].lowercased() == "bearer" ? String(words[1]) : nil
    }

    /// The cookie of that name.
    func cookie(_ name: String) -> String? {
        for pair in headers["cookie"]?.split(separator: ";") ?? [] {
            let parts = pair.split(separator: "=", maxSplits: 1)
            if parts.count == 2, Self.trimmed(parts[0]) == name { return Self.trimmed(parts[1]) }
        }
        return nil
    }
}
