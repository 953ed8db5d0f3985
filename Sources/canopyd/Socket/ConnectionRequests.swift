internal import AgentCore
internal import LinuxSystem

/// From a client's bytes to a request that the agent gets.
extension Connection {
    /// Reads once, and serves one request if there is a whole one; returns whether there was
    /// something to read.
    @discardableResult
    func receive() -> Bool {
        switch phase {
        case .reading:
            // What is buffered comes first, and its turn comes.
            guard !isQueued else { return false }
            let kept = pending.count
            guard let count = read(to: connections.input[kept...]) else { return false }
            take(kept + count, searched: kept > 0 ? restorePending() : 0)
        case .readingBody(let request, let outcome, let body, let left):
            guard let count = read(to: connections.input.prefix(left)) else { return false }
            let bytes = UnsafeMutableRawBufferPointer(rebasing: connections.input[..<count])
            body?.append(UnsafeRawBufferPointer(bytes))
            wipe(bytes)
            if left > count {
                phase = .readingBody(request, outcome, body, left: left - count)
            } else {
                perform(request, outcome, body?.secret())
            }
        case .draining(let left):
            guard let count = read(to: connections.input[...]) else { return false }
            if left > count {
                phase = .draining(left: left - count)
            } else {
                close()
            }
        case .waiting, .writing, .streaming, .closed:
            return false
        }
        return true
    }

    /// Serves a request out of the connection's own buffer.
    func serveBuffered() {
        isQueued = false
        let count = pending.count
        guard case .reading = phase, count > 0 else { return }
        take(count, searched: restorePending())
        if case .reading = phase, !isQueued { wait(for: .readable) }
    }

    /// Returns the number of bytes read; nil when there are none, or no more.
    private func read(to part: Slice<UnsafeMutableRawBufferPointer>) -> Int? {
        switch socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: part)) {
        case .bytes(let count):
            return count
        case .nothing:
            return nil
        case .end:
            // Of a request that is not all there nothing is done.
            close()
            return nil
        }
    }

    // MARK: What waits for its turn

    /// Moves the pending bytes to the start of the shared buffer; returns how many of them have been
    /// searched for the head's end.
    private func restorePending() -> Int {
        connections.pendingBytes -= pending.count
        return pending.restore(to: connections.input)
    }

    private func keepPending(_ bytes: UnsafeRawBufferPointer, searched: Int = 0) {
        guard !bytes.isEmpty else { return }
        pending.keep(bytes, searched: searched)
        connections.pendingBytes += bytes.count
    }

    func dropPending() {
        let count = pending.drop()
        if count > 0 { connections.pendingBytes -= count }
    }

    // MARK: Requests

    /// Takes the first `count` bytes of the shared buffer for a request's start; the end of its head
    /// is not among those that have been `searched`.
    private func take(_ count: Int, searched: Int) {
        let bytes = UnsafeRawBufferPointer(rebasing: connections.input[..<count])
        if searched == 0, answerFromMemory(bytes) { return }
        switch RequestHead.parse(bytes, from: searched) {
        case .incomplete:
            keepPending(bytes, searched: count)
            if deadline.list == nil { connections.operations.add(self, at: .now) }
            wait(for: .readable)
            connections.makeRoom()
        case .fault(let fault):
            endDeadline()
            phase = .waiting(
                Request(label: .none, isHead: false, keepAlive: false, began: .now))
            answer(Reply(Problem(fault)), drains: true)
        case .head(let head, let length):
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
        wipe(UnsafeMutableRawBufferPointer(rebasing: connections.input[..<bytes.count]))
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
            guard socket.sendAll(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else {
                return close()
            }
        }
        if deadline.list == nil { connections.operations.add(self, at: .now) }
        phase = .readingBody(request, outcome, secret, left: left)
        wait(for: .readable)
    }

    private static let tooManySignIns = Problem(
        .tooManyConnections,
        "\(Limits.secretBodies) sign-ins are being sent or wait for their answers; try again in a "
            + "moment")

    func releaseSecret() {
        guard holdsSecret else { return }
        holdsSecret = false
        connections.releaseSecret()
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
}
