// Every reply that canopyd gives, from what it says to the bytes before its body.

extension Problem {
    /// What a client is told whose request's head is not served.
    package init(_ fault: RequestFault) {
        let code: Code =
            switch fault {
            case .malformed, .unsupportedVersion, .unsupportedExpectation: .badRequest
            case .bodyTooLarge: .payloadTooLarge
            case .headTooLarge, .tooManyFields: .headerTooLarge
            }
        self.init(code, fault.detail)
    }
}

extension Reply {
    /// The problem object, as RFC 9457 has it.
    ///
    /// `allow` are the methods of a 405.
    package init(_ problem: Problem, allow: String? = nil) {
        var writer = JSONWriter(into: [UInt8]())
        writer.write(problem)
        self.init(
            status: problem.code.status, contentType: .problem, body: .bytes(writer.finish()),
            retryAfter: problem.retryAfter, allow: allow)
    }

    /// The token object, in `memory`.
    package static func token(_ view: TokenView, in memory: SecretMemory) -> Reply {
        // What stands around the token takes some 300 bytes.
        var writer = JSONWriter(
            into: SecretBuffer(capacity: view.token.value.count + 512, in: memory))
        writer.write(view)
        return Reply(status: 200, body: .secret(writer.finish().secret()))
    }

    /// The bare token and a newline.
    package static func tokenText(_ token: AccessToken) -> Reply {
        Reply(status: 200, contentType: .text, body: .line(token.value))
    }

    package static func profile(_ view: ProfileView) -> Reply {
        var writer = JSONWriter(into: [UInt8]())
        writer.write(view)
        return Reply(status: 200, body: .bytes(writer.finish()))
    }

    /// The sign-in waits for a second factor.
    package static func challenge(_ challenge: SignInChallenge) -> Reply {
        var writer = JSONWriter(into: [UInt8]())
        writer.beginObject()
        writer.key("mfa")
        writer.beginObject()
        writer.key("factors")
        writer.beginArray()
        for factor in challenge.factors { writer.string(factor) }
        writer.endArray()
        writer.member("challenge", challenge.id.text)
        writer.member("expires_at", Timestamp.rfc3339(challenge.expiresAt))
        writer.endObject()
        writer.endObject()
        return Reply(status: 202, body: .bytes(writer.finish()))
    }

    package static func profiles(_ views: [ProfileView]) -> Reply {
        var writer = JSONWriter(into: [UInt8]())
        writer.beginObject()
        writer.key("profiles")
        writer.write(views)
        writer.endObject()
        return Reply(status: 200, body: .bytes(writer.finish()))
    }

    package static func status(_ view: StatusView) -> Reply {
        var writer = JSONWriter(into: [UInt8]())
        writer.write(view)
        return Reply(status: 200, body: .bytes(writer.finish()))
    }

    package static func metrics(_ view: MetricsView) -> Reply {
        Reply(status: 200, contentType: .openMetrics, body: .bytes(view.text))
    }

    /// What a subscriber gets before its first event.
    package static let events = Reply(status: 200, contentType: .eventStream, body: .stream)

    /// Done, and nothing to say.
    package static let done = Reply(status: 204, body: .none)
}

// MARK: - On the wire

extension Reply.Body {
    /// The number of bytes; 0 for a stream.
    package var count: Int {
        switch self {
        case .none, .stream: 0
        case .bytes(let bytes): bytes.count
        case .secret(let secret): secret.count
        case .line(let secret): secret.count + 1
        }
    }
}

extension Reply {
    /// Appends the status line and the headers, down to the empty line.
    ///
    /// `closes` says that the connection is closed after the reply, as it always is after a stream;
    /// `date` is when the reply was made, which RFC 9110 6.6.1 wants said by a server with a clock.
    package func appendHead(to bytes: inout [UInt8], closes: Bool, date: WallTime) {
        bytes.append("HTTP/1.1 " as StaticString)
        bytes.appendDecimal(Int64(status))
        bytes.append(reasonPhrase)
        bytes.append("\r\nDate: " as StaticString)
        Timestamp.appendHTTP(date, to: &bytes)
        bytes.append("\r\nCache-Control: no-store\r\n" as StaticString)
        if status != 204 {
            bytes.append("Content-Type: " as StaticString)
            bytes.append(contentType.name)
            bytes.append("\r\n" as StaticString)
        }
        if status != 204, !endsWithConnection {
            bytes.append("Content-Length: " as StaticString)
            bytes.appendDecimal(Int64(body.count))
            bytes.append("\r\n" as StaticString)
        }
        if let retryAfter {
            bytes.append("Retry-After: " as StaticString)
            bytes.appendDecimal(retryAfter)
            bytes.append("\r\n" as StaticString)
        }
        if let allow {
            bytes.append("Allow: " as StaticString)
            bytes.append(allow)
            bytes.append("\r\n" as StaticString)
        }
        if status == 401 {
            // RFC 9110 15.5.2 asks for a challenge, and some clients fail without one. The scheme
            // is nobody's, so that none answers with credentials that it has for something else.
            bytes.append("WWW-Authenticate: Canopy-Sign-In realm=\"canopyd\"\r\n" as StaticString)
        }
        if closes || endsWithConnection { bytes.append("Connection: close\r\n" as StaticString) }
        bytes.append("\r\n" as StaticString)
    }

    private var reasonPhrase: StaticString {
        switch status {
        case 200: " OK"
        case 202: " Accepted"
        case 204: " No Content"
        case 400: " Bad Request"
        case 401: " Unauthorized"
        case 403: " Forbidden"
        case 404: " Not Found"
        case 405: " Method Not Allowed"
        case 413: " Content Too Large"
        case 422: " Unprocessable Content"
        case 423: " Locked"
        case 429: " Too Many Requests"
        case 431: " Request Header Fields Too Large"
        case 502: " Bad Gateway"
        case 503: " Service Unavailable"
        case 504: " Gateway Timeout"
        // The phrase may be empty; the space before it may not.
        default: " "
        }
    }

    /// The reply in one piece, for a connection that is kept; its body has to be a secret.
    package func inOnePiece(in memory: SecretMemory, date: WallTime) -> Secret {
        guard case .secret(let body) = body else {
            preconditionFailure("only what holds a token is kept in secret memory")
        }
        var head = [UInt8]()
        appendHead(to: &head, closes: false, date: date)
        return Secret(capacity: head.count + body.count, in: memory) { target in
            target.copyBytes(from: head)
            body.withBytes {
                UnsafeMutableRawBufferPointer(rebasing: target[head.count...]).copyMemory(from: $0)
            }
            return target.count
        }
    }
}

/// Lends the decimal digits of `value`, which is not negative.
package func withDecimal<Result>(
    _ value: Int64, _ body: (UnsafeRawBufferPointer) -> Result
) -> Result {
    precondition(value >= 0, "lengths, statuses and waits are not negative")
    // Int64.max has 19 digits.
    return withUnsafeTemporaryAllocation(byteCount: 19, alignment: 1) { digits in
        var start = 19
        var left = UInt64(value)
        repeat {
            start -= 1
            digits[start] = UInt8(ascii: "0") + UInt8(left % 10)
            left /= 10
        } while left > 0
        return body(UnsafeRawBufferPointer(rebasing: digits[start...]))
    }
}

extension [UInt8] {
    /// Appends `value`, which is not negative, in decimal.
    mutating func appendDecimal(_ value: Int64) {
        withDecimal(value) { append(contentsOf: $0) }
    }
}
