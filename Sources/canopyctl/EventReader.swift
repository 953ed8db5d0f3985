internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// canopyd's events as they come: server-sent events, whose data is one line of JSON.
struct EventReader: ~Copyable {
    /// One event.
    struct Event {
        /// `state` or `rotated`.
        let name: String

        /// The JSON object, as it came.
        let data: [UInt8]
    }

    private let connection: ClientConnection
    private var received = ReceivedBytes()

    /// Whether the first events may have come with the head, where no poll(2) tells of them.
    private(set) var isUnread = true

    /// When the last byte came, a comment's too.
    private(set) var lastByte = BootTime.now

    /// Waits for the answer's head; throws the problem that it may be instead.
    init(_ connection: consuming ClientConnection) throws(Complaint) {
        self.connection = connection
        let head = try self.connection.head(into: &received)
        guard head.status == 200, head.hasMediaType("text/event-stream", in: received.bytes)
        else {
            throw try EventReader.problem(self.connection, head, &received)
        }
        received.drop(head.byteCount)
    }

    private static func problem(
        _ connection: borrowing ClientConnection, _ head: ResponseHead,
        _ received: inout ReceivedBytes
    ) throws(Complaint) -> Complaint {
        guard head.hasMediaType("application/problem+json", in: received.bytes) else {
            return .incomprehensible("status \(head.status), and no event stream")
        }
        let length = head.contentLength ?? 0
        guard length <= Limits.answerBodyBytes else {
            return .incomprehensible("\(length) bytes of a problem")
        }
        received.reserve(head.byteCount + length)
        while received.count < head.byteCount + length {
            try connection.receive(into: &received)
        }
        let body = UnsafeRawBufferPointer(
            rebasing: received.bytes[head.byteCount..<head.byteCount + length])
        do throws(JSONFault) {
            return ReceivedProblem(try JSONReader.parse(body)).complaint
        } catch {
            return .incomprehensible("its JSON: \(error)")
        }
    }

    /// Readable when something has come.
    var descriptor: Int32 { connection.descriptor }

    /// What has come since, in order, comments left out; throws where the connection ended.
    mutating func next() throws(Complaint) -> [Event] {
        var events: [Event] = []
        isUnread = false
        repeat {
            while let block = takeBlock() {
                if let event = block.event { events.append(event) }
            }
            guard received.count <= Limits.answerBodyBytes else {
                throw .incomprehensible("an event without an end")
            }
        } while try hasReceived(before: events)
        return events
    }

    /// Whether more has come; the connection's end waits for the next call if there is something
    /// to be told first.
    private mutating func hasReceived(before: [Event]) throws(Complaint) -> Bool {
        do throws(Complaint) {
            guard try connection.receiveNow(into: &received) else { return false }
            lastByte = .now
            return true
        } catch {
            guard before.isEmpty else { return false }
            throw error
        }
    }

    /// The next whole block, up to its empty line; nil if there is none yet.
    private mutating func takeBlock() -> Block? {
        let newline = UInt8(ascii: "\n")
        let bytes = received.bytes
        var end = 1
        while end < bytes.count {
            if bytes[end] == newline, bytes[end - 1] == newline { break }
            end += 1
        }
        guard end < bytes.count else { return nil }
        let block = Block(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
        received.drop(end + 1)
        return block
    }

    private struct Block {
        /// Nil for a comment.
        let event: Event?

        init(_ bytes: UnsafeRawBufferPointer) {
            var name = ""
            var data: [UInt8]?
            for line in bytes.split(separator: UInt8(ascii: "\n")) {
                if let value = Block.value("event: ", line) {
                    name = String(decoding: value, as: UTF8.self)
                } else if let value = Block.value("data: ", line) {
                    data = Array(value)
                }
            }
            event = data.map { Event(name: name, data: $0) }
        }

        private static func value(
            _ field: StaticString, _ line: Slice<UnsafeRawBufferPointer>
        ) -> Slice<UnsafeRawBufferPointer>? {
            let count = field.utf8CodeUnitCount
            guard line.count >= count,
                line.prefix(count).elementsEqual(
                    UnsafeRawBufferPointer(start: field.utf8Start, count: count))
            else { return nil }
            return line.dropFirst(count)
        }
    }
}

extension EventReader.Event {
    /// Reads the data; the view must not leave `read`.
    func json<Result>(_ read: (JSONValue) throws(Complaint) -> Result) throws(Complaint) -> Result {
        let result: Swift.Result<Result, Complaint> = data.withUnsafeBytes { bytes in
            let value: JSONValue
            do throws(JSONFault) {
                value = try JSONReader.parse(bytes)
            } catch {
                return .failure(.incomprehensible("an event's JSON: \(error)"))
            }
            return Swift.Result { () throws(Complaint) in try read(value) }
        }
        return try result.get()
    }
}
