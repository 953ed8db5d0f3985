/// One answer to a client, before it is bytes.
package struct Reply: Sendable {
    package enum ContentType: Sendable, Equatable {
        case json
        case problem
        case text
        case openMetrics
        case eventStream

        package var name: StaticString {
            switch self {
            case .json: "application/json"
            case .problem: "application/problem+json"
            case .text: "text/plain; charset=utf-8"
            case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            case .eventStream: "text/event-stream"
            }
        }
    }

    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// A body that holds a token.
        case secret(Secret)
        /// A bare token and a newline.
        case line(Secret)
        /// No length: what follows until the connection closes.
        case stream
    }

    /// Whether nothing but the connection's end tells where the body ends, so that no other answer
    /// follows on it; not to HEAD either, whose answer says the same.
    package var endsWithConnection: Bool {
        if case .stream = body { true } else { false }
    }

    package let status: Int
    package let contentType: ContentType
    package let body: Body

    /// Whole seconds of a `Retry-After` header.
    package let retryAfter: Int64?

    /// The methods of an `Allow` header.
    package let allow: String?

    package init(
        status: Int, contentType: ContentType = .json, body: Body, retryAfter: Int64? = nil,
        allow: String? = nil
    ) {
        self.status = status
        self.contentType = contentType
        self.body = body
        self.retryAfter = retryAfter
        self.allow = allow
    }
}
