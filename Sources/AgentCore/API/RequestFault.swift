/// Why a request's head is not served.
package enum RequestFault: Error, Equatable, Sendable {
    case malformed(Rule)
    /// The `Content-Length`.
    case bodyTooLarge(Int)
    case headTooLarge
    case tooManyFields
    case unsupportedVersion
    case unsupportedExpectation

    /// The rule of RFC 9112 that the head breaks.
    package enum Rule: Equatable, Sendable, CaseIterable {
        case emptyLines
        case bareLineFeed
        case bareCarriageReturn
        case controlByte
        case method
        case requestLine
        case target
        case fieldName
        case spaceBeforeColon
        case foldedLine
        case contentLength
        case repeatedContentLength
        case transferEncoding
        case repeatedHost
        case port

        /// A sentence for the client.
        package var detail: StaticString {
            switch self {
            case .emptyLines:
                "There are more than 4 empty lines before the request line."
            case .bareLineFeed:
                "A line of the head ends with LF alone; lines end with CR LF."
            case .bareCarriageReturn:
                "There is a CR in the head that no LF follows; lines end with CR LF."
            case .controlByte:
                "There is a control character in the head."
            case .method:
                "The request does not start with a method and a space."
            case .requestLine:
                "The request line is not METHOD TARGET HTTP/1.1 with one space between each."
            case .target:
                "The request's target is not a path that starts with / and has everything but visible ASCII percent-encoded."
            case .fieldName:
                "A header line does not start with a field name and a colon."
            case .spaceBeforeColon:
                "There is a space between a header's name and its colon."
            case .foldedLine:
                "A header line starts with a space; a header may not go on in a second line."
            case .contentLength:
                "Content-Length is not a whole number, or has far too many digits."
            case .repeatedContentLength:
                "There is more than one Content-Length."
            case .transferEncoding:
                "Transfer-Encoding is not supported; send the body with a Content-Length."
            case .repeatedHost:
                "There is more than one Host."
            case .port:
                "The port of the host is above 65535."
            }
        }
    }

    /// A sentence for the client: what is wrong, and what is allowed.
    package var detail: String {
        switch self {
        case .malformed(let rule):
            "\(rule.detail)"
        case .bodyTooLarge(let length):
            "The request's body of \(length) bytes is too large; \(Limits.requestBodyBytes) are allowed."
        case .headTooLarge:
            "The request's head is too large; \(Limits.requestHeadBytes) bytes are allowed."
        case .tooManyFields:
            "The request has too many header lines; \(Limits.requestFields) are allowed."
        case .unsupportedVersion:
            "The request is not in HTTP/1.1 or HTTP/1.0."
        case .unsupportedExpectation:
            "The only expectation that is supported is 100-continue."
        }
    }
}
