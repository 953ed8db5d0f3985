internal import AgentCore
internal import LinuxSystem

/// One client: reads its requests one after the other, and answers each before the next.
///
/// While a request waits for its answer, or the answer for the client, nothing more is read: a
/// client that sends without reading fills its own socket's buffer and nothing else.
final class Connection {
    enum Phase {
        /// Between requests, or within a head. Leaves when a request is all there.
        case reading
        /// Within a body. Leaves when it is all there.
        case readingBody(Request, Outcome, SecretBody?, left: Int)
        /// The agent has the request. Leaves with its answer, or when the client goes.
        case waiting(Request)
        /// The answer is partly sent. Leaves when it is all sent.
        case writing(OutgoingReply, then: Sequel)
        /// The last answer is sent, and the client may be sending still; that is thrown away, so
        /// that the client gets to the answer. Leaves with the connection.
        case draining(left: Int)
        /// Gets events. Leaves with the connection.
        case streaming
        case closed
    }

    /// What follows an answer.
    enum Sequel {
        case nextRequest
        case end
        /// The end, once the client has ended or said enough: it would not read an answer whose
        /// sender is gone while it sends.
        case drainedEnd
    }

    /// The route, or why there is none.
    typealias Outcome = Result<Route, Router.Misrouted>

    /// What its answer has to know of a request.
    struct Request {
        let label: Route.Label
        let isHead: Bool
        let keepAlive: Bool
        let began: BootTime

        /// The same, with nothing to come after it on the connection.
        var asLast: Request {
            Request(label: label, isHead: isHead, keepAlive: false, began: began)
        }
    }

    let id: ClientID
    let caller: Caller
    let socket: ClientSocket
    // It outlives us: it is what holds us.
    unowned(unsafe) let connections: Connections
    private var watch: DescriptorWatch?
    private(set) var awaited: Readiness = .readable
    var phase: Phase = .reading

    /// Whether the client was gone before it had its answer.
    private(set) var isForsaken = false

    /// Whether the client has had an answer, and may ask again.
    var hasBeenServed = false

    /// What was read beyond what is being served.
    var pending = PendingInput()

    /// Whether the pending bytes have their turn to come.
    var isQueued = false

    /// Whether one of the bodies that may be held at a time is ours.
    var holdsSecret = false
    var events = EventQueue()

    /// Where the connection stands among those with a deadline.
    var deadline = Deadlines.Place()

    init(_ id: ClientID, _ caller: Caller, _ descriptor: Int32, _ connections: Connections) {
        self.id = id
        self.caller = caller
        socket = ClientSocket(descriptor: descriptor)
        self.connections = connections
    }

    /// Begins to watch the descriptor for what is waited for.
    func start(_ loop: EventLoop) throws(SystemError) {
        watch = try loop.watch(newcomer: socket.descriptor, awaited) {
            // We hold the watch; and the loop outlives us.
            [unowned(unsafe) self, unowned(unsafe) loop] readiness in
            if hasBeenServed, readiness == .readable { moveUp(loop) }
            ready(readiness)
        }
    }

    /// From its second request on the client is one of those that do not wait for a crowd.
    ///
    /// Not from the first: most clients have but one.
    private func moveUp(_ loop: EventLoop) {
        do throws(SystemError) {
            watch = try loop.watch(socket.descriptor, awaited) {
                [unowned(unsafe) self] in ready($0)
            }
        } catch {
            // For lack of kernel memory: it is served where it was, and tries again with its next
            // request.
        }
    }

    /// Whether nothing is being read, answered or sent.
    var isIdle: Bool {
        switch phase {
        case .reading, .readingBody, .draining, .streaming: true
        case .waiting, .writing, .closed: false
        }
    }

    var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    var isSending: Bool {
        if case .writing = phase { true } else { false }
    }

    private func ready(_ readiness: Readiness) {
        switch phase {
        case .reading, .readingBody, .draining:
            receive()
        case .waiting, .streaming, .writing:
            // A client that has only closed its sending half is still reading.
            guard readiness.isDisjoint(with: [.hungUp, .failed]) else { return close() }
            if readiness.contains(.writable) { resumeSending() }
        case .closed:
            break
        }
    }

    func wait(for readiness: Readiness) {
        guard awaited != readiness else { return }
        awaited = readiness
        watch?.wait(for: readiness)
    }

    /// Closes what takes no more bytes: the client is gone.
    func forsake() {
        isForsaken = true
        close()
    }

    func close() {
        let left = phase
        if case .closed = left { return }
        phase = .closed
        endDeadline()
        watch = nil
        dropPending()
        events = EventQueue()
        socket.close()
        releaseSecret()
        connections.forget(id)
        switch left {
        case .waiting, .streaming: connections.agent.clientGone(id)
        case .reading, .readingBody, .writing, .draining, .closed: break
        }
    }
}
