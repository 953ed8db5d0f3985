internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// One client: reads its requests one after the other, and answers each before the next.
///
/// While a request waits for its answer, or the answer for the client, nothing more is read: a
/// client that sends without reading fills its own socket's buffer and nothing else.
final class Connection {
    private enum Phase {
        /// Between requests, or within a head. Leaves when a request is all there.
        case reading
        /// Within a body. Leaves when it is all there.
        case readingBody(Request, Outcome, SecretBody?, left: Int)
        /// The agent has the request. Leaves with its answer, or when the client goes.
        case waiting(Request)
        /// The answer is partly sent. Leaves when it is all sent.
        case writing(Unsent, thenCloses: Bool)
        /// The answer to a request that was not read to its end is sent; the rest of the request
        /// is thrown away, so that the client gets to the answer. Leaves with the connection.
        case draining(left: Int)
        /// Gets events. Leaves with the connection.
        case streaming
        case closed
    }

    /// The route, or why there is none.
    private typealias Outcome = Result<Route, Router.Misrouted>

    /// What its answer has to know of a request.
    private struct Request {
        let label: Route.Label
        let isHead: Bool
        let keepAlive: Bool
        let began: BootTime

        /// The same, with nothing to come after it on the connection.
        var asLast: Request {
            Request(label: label, isHead: isHead, keepAlive: false, began: began)
        }
    }

    /// What the socket did not take.
    private struct Unsent {
        let head: [UInt8]
        let body: Reply.Body
        var sent: Int
    }

    let id: ClientID
    let caller: Caller
    private let descriptor: Int32
    // It outlives us: it is what holds us.
    private unowned(unsafe) let connections: Connections
    private var watch: DescriptorWatch?
    private var awaited: Readiness = .readable
    private var phase: Phase = .reading

    /// Bytes that were read and not used: a part of a head, or requests to come.
    ///
    /// Given back while there are none, so that an idle connection costs no buffer.
    private var pending: UnsafeMutableRawBufferPointer?

    /// How many of the pending bytes have been searched for the head's end in vain.
    private var searched = 0
    private var isQueued = false

    /// Whether one of the bodies that may be held at a time is ours.
    private var holdsSecret = false
    private var events = EventQueue()

    /// Where the connection stands among those with a deadline.
    var deadline = Deadlines.Place()

    init(_ id: ClientID, _ caller: Caller, _ descriptor: Int32, _ connections: Connections) {
        self.id = id
        self.caller = caller
        self.descriptor = descriptor
        self.connections = connections
    }

    /// Begins to watch the descriptor.
    func start(_ loop: EventLoop) throws(SystemError) {
        watch = try loop.watch(descriptor, .readable) {
            // We hold the watch.
            [unowned(unsafe) self] in self.ready($0)
        }
    }

    /// Whether nothing is being read, answered or sent.
    var isIdle: Bool {
        switch phase {
        case .reading, .readingBody, .draining, .streaming: true
        case .waiting, .writing, .closed: false
        }
    }

    private var isClosed: Bool {
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

    private func wait(for readiness: Readiness) {
        guard awaited != readiness else { return }
        awaited = readiness
        watch?.wait(for: readiness)
    }

    // MARK: Reading

    /// Reads once, and serves one request if there is a whole one.
    func receive() {
        switch phase {
        case .reading:
            // What is buffered comes first, and its turn comes.
            guard !isQueued else { return }
            let kept = pending?.count ?? 0
            guard let count = read(at: kept, atMost: connections.input.count - kept) else { return }
            restorePending()
            take(kept + count)
        case .readingBody(let request, let outcome, let body, let left):
            guard let count = read(at: 0, atMost: min(left, connections.input.count)) else {
                return
            }
            let bytes = UnsafeMutableRawBufferPointer(rebasing: connections.input[..<count])
            body?.append(UnsafeRawBufferPointer(bytes))
            bytes.wipe()
            if left > count {
                phase = .readingBody(request, outcome, body, left: left - count)
            } else {
                perform(request, outcome, body?.secret())
            }
        case .draining(let left):
            guard let count = read(at: 0, atMost: connections.input.count) else { return }
            guard left > count else { return close() }
            phase = .draining(left: left - count)
        case .waiting, .writing, .streaming, .closed:
            break
        }
    }

    /// Serves a request out of the connection's own buffer.
    func serveBuffered() {
        isQueued = false
        guard case .reading = phase, let count = pending?.count else { return }
        restorePending()
        take(count)
    }

    /// Returns the number of bytes read; nil when there are none, or no more.
    private func read(at offset: Int, atMost count: Int) -> Int? {
        guard let start = connections.input.baseAddress else { return nil }
        while true {
            let result = recv(descriptor, start + offset, count, 0)
            if result > 0 { return result }
            if result < 0, errno == EINTR { continue }
            if result < 0, errno == EAGAIN { return nil }
            // The end, orderly or not; of a request that is not all there nothing is done.
            close()
            return nil
        }
    }

    /// Moves the pending bytes to the start of the shared buffer.
    private func restorePending() {
        guard let pending else { return }
        connections.input.copyMemory(from: UnsafeRawBufferPointer(pending))
        dropPending()
    }

    private func keepPending(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        let kept = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        kept.copyMemory(from: bytes)
        pending = kept
        connections.pendingBytes += bytes.count
    }

    private func dropPending() {
        guard let pending else { return }
        // A sign-in that was sent behind another request stands here in the clear.
        pending.wipe()
        pending.deallocate()
        connections.pendingBytes -= pending.count
        self.pending = nil
    }

    /// Takes the first `count` bytes of the shared buffer for a request's start.
    private func take(_ count: Int) {
        let bytes = UnsafeRawBufferPointer(rebasing: connections.input[..<count])
        if searched == 0, answerFromMemory(bytes) { return }
        switch RequestHead.parse(bytes, from: searched) {
        case .incomplete:
            searched = count
            keepPending(bytes)
            if deadline.list == nil { connections.operations.add(self, at: .now) }
            wait(for: .readable)
            connections.makeRoom()
        case .fault(let fault):
            endDeadline()
            phase = .waiting(
                Request(label: .none, isHead: false, keepAlive: false, began: .now))
            answer(Reply(Problem(fault)), drains: true)
        case .head(let head, let length):
            searched = 0
            begin(head, bytes, length)
        }
    }

    private func begin(_ head: RequestHead, _ bytes: UnsafeRawBufferPointer, _ length: Int) {
        let began = BootTime.now
        let outcome: Outcome
        let label: Route.Label
        do throws(Router.Misrouted) {
            let route = try Router.route(head, bytes)
            outcome = .success(route)
            label = route.label
            if bytes.count == length { connections.recent.remember(route, of: head, bytes) }
        } catch {
            outcome = .failure(error)
            label = .none
        }
        let request = Request(
            label: label, isHead: head.method == .head, keepAlive: head.keepAlive, began: began)
        let here = min(head.contentLength, bytes.count - length)
        keepPending(UnsafeRawBufferPointer(rebasing: bytes[(length + here)...]))
        // Room may have been made by closing this very connection.
        guard connections.makeRoom(), !isClosed else { return close() }
        guard head.contentLength > 0 else {
            endDeadline()
            return perform(request, outcome, nil)
        }
        var secret: SecretBody?
        if case .success(let route) = outcome, route.takesBody {
            guard connections.mayHoldSecret(holdsSecret) else {
                endDeadline()
                phase = .waiting(request.asLast)
                return answer(Reply(Connection.tooManySignIns), drains: true)
            }
            holdsSecret = true
            let body = SecretBody(capacity: head.contentLength)
            body.append(UnsafeRawBufferPointer(rebasing: bytes[length..<length + here]))
            secret = body
        }
        UnsafeMutableRawBufferPointer(rebasing: connections.input[..<bytes.count]).wipe()
        let left = head.contentLength - here
        guard left > 0 else { return perform(request, outcome, secret?.secret()) }
        if head.expectsContinue {
            if case .failure(let misrouted) = outcome {
                // The client may send its body all the same, and where that ends and the next
                // request starts could not be told.
                endDeadline()
                phase = .waiting(request.asLast)
                return answer(
                    Reply(misrouted.problem, allow: misrouted.allow), drains: true)
            }
            guard send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return close() }
        }
        if deadline.list == nil { connections.operations.add(self, at: .now) }
        phase = .readingBody(request, outcome, secret, left: left)
        wait(for: .readable)
    }

    private static let tooManySignIns = Problem(
        .tooManyConnections,
        "\(Limits.secretBodies) sign-ins are being sent or wait for their answers; try again in a "
            + "moment")

    private func releaseSecret() {
        guard holdsSecret else { return }
        holdsSecret = false
        connections.releaseSecret()
    }

    // MARK: Answering

    /// Answers a request that was asked before in the same bytes, if the answer lies ready.
    private func answerFromMemory(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !connections.isStopping, let wish = connections.recent.wish(of: bytes) else {
            return false
        }
        let now = Moment.now
        guard let reply = connections.agent.preparedToken(wish, for: caller, at: now) else {
            return false
        }
        let sent = reply.withBytes {
            Connection.taken(clinux_send(descriptor, $0.baseAddress, $0.count))
        }
        connections.answered(.token, status: 200, after: .now - now.boot)
        guard let sent else {
            close()
            return true
        }
        if sent < reply.count {
            connections.operations.add(self, at: .now)
            phase = .writing(Unsent(head: [], body: .secret(reply), sent: sent), thenCloses: false)
            wait(for: .writable)
        }
        return true
    }

    private func perform(_ request: Request, _ outcome: Outcome, _ body: Secret?) {
        endDeadline()
        phase = .waiting(request)
        switch outcome {
        case .failure(let misrouted):
            answer(Reply(misrouted.problem, allow: misrouted.allow))
        case .success(.events(let profile)):
            subscribe(to: profile, request)
        case .success(let route):
            if let reply = connections.agent.handle(route, body: body, from: id) {
                answer(reply)
            } else if case .waiting = phase {
                wait(for: [])
            }
        }
    }

    /// Sends the answer to the request that waits.
    func answer(_ reply: Reply, drains: Bool = false) {
        guard case .waiting(let request) = phase else {
            preconditionFailure("an answer without a request")
        }
        // From here on the agent has no part in it, and need not hear that the client is gone.
        phase = .reading
        connections.answered(request.label, status: reply.status, after: .now - request.began)

        releaseSecret()
        let closes = !request.keepAlive || connections.isStopping
        connections.head.removeAll(keepingCapacity: true)
        reply.appendHead(to: &connections.head, closes: closes)
        let body = request.isHead ? Reply.Body.none : reply.body
        let total = connections.head.count + (request.isHead ? 0 : reply.body.count)
        guard let sent = send(connections.head, body, from: 0) else { return close() }
        guard sent == total else {
            connections.operations.add(self, at: .now)
            phase = .writing(
                Unsent(head: connections.head, body: body, sent: sent), thenCloses: closes)
            return wait(for: .writable)
        }
        answerSent(thenCloses: closes, drains: drains)
    }

    private func answerSent(thenCloses closes: Bool, drains: Bool = false) {
        guard !closes else {
            guard drains else { return close() }
            shutdown(descriptor, Int32(SHUT_WR))
            connections.operations.add(self, at: .now)
            phase = .draining(left: Limits.requestDrainBytes)
            return wait(for: .readable)
        }
        phase = .reading
        wait(for: .readable)
        if pending != nil {
            isQueued = true
            connections.queue(self)
        }
    }

    private func resumeSending() {
        switch phase {
        case .writing(var unsent, let closes):
            guard let sent = send(unsent.head, unsent.body, from: unsent.sent) else {
                return close()
            }
            unsent.sent += sent
            if unsent.sent < unsent.head.count + unsent.body.count {
                phase = .writing(unsent, thenCloses: closes)
            } else {
                endDeadline()
                answerSent(thenCloses: closes)
            }
        case .streaming:
            flushEvents()
        case .reading, .readingBody, .waiting, .draining, .closed:
            break
        }
    }

    // MARK: Events

    private func subscribe(to profile: ProfileName?, _ request: Request) {
        guard !request.isHead else { return answer(Reply.events) }
        switch connections.agent.subscribe(id, profile: profile) {
        case .refused(let problem):
            answer(Reply(problem))
        case .accepted(let initial):
            connections.answered(.events, status: 200, after: .now - request.began)
            var start: [UInt8] = []
            Reply.events.appendHead(to: &start, closes: true)
            dropPending()
            phase = .streaming
            events.add(start, key: "head")
            events.add(initial, key: "present states")
            flushEvents()
        }
    }

    func publish(_ event: [UInt8], _ key: String) {
        guard case .streaming = phase else { return }
        events.add(event, key: key)
        guard events.count <= Limits.unsentEvents else { return close() }
        flushEvents()
    }

    func sendKeepAlive() {
        events.add(EventStream.keepAlive, key: "keep-alive")
        flushEvents()
    }

    private func flushEvents() {
        let hadUnsent = awaited == .writable
        while let bytes = events.current {
            let sent = bytes.withUnsafeBytes { bytes in
                glibcSend(UnsafeRawBufferPointer(rebasing: bytes[events.sent...]))
            }
            guard let sent else { return close() }
            guard sent > 0 else {
                // The deadline counts from the first byte that was not taken: a reader that takes
                // a byte now and then is dropped as well.
                if !hadUnsent {
                    endDeadline()
                    connections.operations.add(self, at: .now)
                }
                return wait(for: .writable)
            }
            events.advance(by: sent)
        }
        endDeadline()
        connections.keepAlives.add(self, at: .now)
        wait(for: [])
    }

    // MARK: Sending

    /// Sends all of a few bytes; false if the socket does not take them.
    private func send(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { glibcSend($0) } == bytes.count
    }

    /// Returns how many bytes the socket took; nil if the peer is gone.
    private func glibcSend(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var piece = iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return Connection.taken(clinux_send_pieces(descriptor, &piece, 1))
    }

    private static func taken(_ result: Int) -> Int? {
        if result >= 0 { return result }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// Sends head and body from byte `start` on, without a copy of either.
    private func send(_ head: [UInt8], _ body: Reply.Body, from start: Int) -> Int? {
        head.withUnsafeBytes { head in
            switch body {
            case .none, .stream:
                return send(head, nil, nil, from: start)
            case .bytes(let bytes):
                return bytes.withUnsafeBytes { send(head, $0, nil, from: start) }
            case .secret(let secret):
                return secret.withBytes { send(head, $0, nil, from: start) }
            case .line(let secret):
                return secret.withBytes { secret in
                    withUnsafeBytes(of: UInt8(ascii: "\n")) { newline in
                        send(head, secret, newline, from: start)
                    }
                }
            }
        }
    }

    private func send(
        _ head: UnsafeRawBufferPointer, _ first: UnsafeRawBufferPointer?,
        _ second: UnsafeRawBufferPointer?, from start: Int
    ) -> Int? {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: 3) { pieces in
            var count = 0
            var skipped = start
            func add(_ bytes: UnsafeRawBufferPointer?) {
                guard let bytes, !bytes.isEmpty else { return }
                let skip = min(skipped, bytes.count)
                skipped -= skip
                guard skip < bytes.count else { return }
                let rest = UnsafeRawBufferPointer(rebasing: bytes[skip...])
                pieces[count] = iovec(
                    iov_base: UnsafeMutableRawPointer(mutating: rest.baseAddress),
                    iov_len: rest.count)
                count += 1
            }
            add(head)
            add(first)
            add(second)
            return Connection.taken(
                clinux_send_pieces(descriptor, pieces.baseAddress, count))
        }
    }

    // MARK: The end

    func close() {
        let left = phase
        if case .closed = left { return }
        phase = .closed
        endDeadline()
        watch = nil
        dropPending()
        events = EventQueue()
        Glibc.close(descriptor)
        releaseSecret()
        connections.forget(id)
        switch left {
        case .waiting, .streaming: connections.agent.clientGone(id)
        case .reading, .readingBody, .writing, .draining, .closed: break
        }
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Overwrites the bytes, which the optimiser may not drop.
    fileprivate func wipe() {
        guard let start = baseAddress else { return }
        explicit_bzero(start, count)
    }
}

/// A body that must not be seen, as it arrives.
private final class SecretBody {
    private var buffer: SecretBuffer

    init(capacity: Int) {
        buffer = SecretBuffer(capacity: capacity, in: .locked)
    }

    func append(_ bytes: UnsafeRawBufferPointer) {
        buffer.append(contentsOf: bytes)
    }

    func secret() -> Secret { buffer.secret() }
}
