internal import AgentCore

/// A reply on its way to a client, and how much of it the socket has taken.
struct OutgoingReply {
    private let head: [UInt8]
    private let body: Reply.Body
    private var sent: Int

    /// `sent` bytes have been taken already.
    init(head: [UInt8], _ body: Reply.Body, sent: Int = 0) {
        self.head = head
        self.body = body
        self.sent = sent
    }

    var isSent: Bool { sent == head.count + body.count }

    /// Sends what the socket takes of the rest; false if the client is gone.
    mutating func send(on socket: ClientSocket) -> Bool {
        guard let count = socket.send(head, body, from: sent) else { return false }
        sent += count
        return true
    }
}
