internal import AgentCore
internal import LinuxSystem

/// canopyd's answer, in locked memory: its body may be a token.
struct Response: ~Copyable {
    let head: ResponseHead
    private let bodyBytes: Int
    private let received: ReceivedBytes

    init(head: ResponseHead, bodyBytes: Int, received: consuming ReceivedBytes) {
        self.head = head
        self.bodyBytes = bodyBytes
        self.received = received
    }

    var status: Int { head.status }

    /// The body; valid as long as the response.
    private var body: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            rebasing: received.bytes[head.byteCount..<head.byteCount + bodyBytes])
    }

    /// As the answer says it, for a complaint.
    private var mediaType: String {
        String(decoding: received.bytes[head.mediaType], as: UTF8.self)
    }

    private func isOf(_ mediaType: StaticString) -> Bool {
        head.hasMediaType(mediaType, in: received.bytes)
    }

    /// Reads the body as JSON; the view must not leave `read`.
    func json<Result>(_ read: (JSONValue) throws(Complaint) -> Result) throws(Complaint) -> Result {
        let value: JSONValue
        do {
            value = try JSONReader.parse(body)
        } catch {
            throw .incomprehensible("its JSON: \(error)")
        }
        return try read(value)
    }

    /// Passes the response on if it has one of two statuses, else throws its problem.
    consuming func expecting(_ wanted: Int, or other: Int? = nil) throws(Complaint) -> Response {
        if status == wanted || status == other { return self }
        guard isOf("application/problem+json") else {
            throw .incomprehensible("status \(status), \(mediaType)")
        }
        throw try json { value throws(Complaint) in ReceivedProblem(value).complaint }
    }

    /// Writes the body to standard output, with a newline at its end.
    func print() throws(Complaint) {
        try StandardOutput.write(body)
        if body.last != UInt8(ascii: "\n") { try StandardOutput.print("") }
    }

    /// Writes `prefix`, the bare token that the body is, and a newline, in one piece.
    func printToken(after prefix: StaticString = "") throws(Complaint) {
        guard isOf("text/plain") else {
            throw .incomprehensible("a token was asked for as text, and came as \(mediaType)")
        }
        var token = body
        if token.last == UInt8(ascii: "\n") {
            token = UnsafeRawBufferPointer(rebasing: token.dropLast())
        }
        // Anything else in it would be a second line, or a second header.
        guard !token.isEmpty, token.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .incomprehensible("the token is not one word")
        }
        if prefix.utf8CodeUnitCount == 0, token.count < bodyBytes {
            return try StandardOutput.write(body)
        }
        var line = SecretBuffer(capacity: token.count + 32, in: .locked)
        line.append(prefix)
        line.append(contentsOf: token)
        line.append(UInt8(ascii: "\n"))
        let whole = line.secret()
        try whole.withBytes { bytes throws(Complaint) in try StandardOutput.write(bytes) }
    }
}
