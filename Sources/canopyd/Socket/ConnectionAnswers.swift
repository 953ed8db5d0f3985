internal import AgentCore
internal import LinuxSystem

/// From the agent's reply to bytes that the client has.
extension Connection {
    /// Answers a request that was asked before in the same bytes, if the answer lies ready.
    func answerFromMemory(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !connections.isStopping, let wish = connections.recent.wish(of: bytes) else {
            return false
        }
        let now = Moment.now
        guard let reply = connections.agent.preparedToken(wish, for: caller, at: now) else {
            return false
        }
        let sent = reply.withBytes { socket.send($0) }
        connections.answered(.token, status: 200, after: .now - now.boot)
        guard let sent else {
            forsake()
            return true
        }
        hasBeenServed = true
        if sent < reply.count {
            connections.operations.add(self, at: .now)
            phase = .writing(
                OutgoingReply(head: [], .secret(reply), sent: sent), then: .nextRequest)
            wait(for: .writable)
        }
        return true
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
        let closes = !request.keepAlive || connections.isStopping || reply.endsWithConnection
        let sequel: Sequel = closes ? drains ? .drainedEnd : .end : .nextRequest
        connections.head.removeAll(keepingCapacity: true)
        reply.appendHead(to: &connections.head, closes: closes, date: .now)
        var outgoing = OutgoingReply(
            head: connections.head, request.isHead ? .none : reply.body)
        guard outgoing.send(on: socket) else { return forsake() }
        guard outgoing.isSent else {
            connections.operations.add(self, at: .now)
            phase = .writing(outgoing, then: sequel)
            return wait(for: .writable)
        }
        go(on: sequel)
    }

    private func go(on sequel: Sequel) {
        switch sequel {
        case .nextRequest:
            hasBeenServed = true
            phase = .reading
            guard pending.count > 0 else { return wait(for: .readable) }
            isQueued = true
            connections.queue(self)
            // What it has sent beyond that would be announced, in vain, in every turn until then.
            wait(for: [])
        case .end:
            close()
        case .drainedEnd:
            connections.operations.add(self, at: .now)
            drain()
        }
    }

    /// Says that nothing more comes, and throws away what the client sends.
    private func drain() {
        socket.endSending()
        phase = .draining(left: Limits.requestDrainBytes)
        wait(for: .readable)
    }

    /// Gives a client that is not let in the reason as its only answer, whatever it asks.
    func turnAway(_ problem: Problem) {
        let reply = Reply(problem)
        connections.head.removeAll(keepingCapacity: true)
        reply.appendHead(to: &connections.head, closes: true, date: .now)
        var outgoing = OutgoingReply(head: connections.head, reply.body)
        // It fits into the buffer of a new socket; a client that is gone needs no answer.
        guard outgoing.send(on: socket), outgoing.isSent else { return close() }
        connections.farewells.add(self, at: .now)
        drain()
    }

    /// Goes on where the socket took no more.
    func resumeSending() {
        switch phase {
        case .writing(var outgoing, let sequel):
            guard outgoing.send(on: socket) else { return close() }
            if outgoing.isSent {
                endDeadline()
                go(on: sequel)
            } else {
                phase = .writing(outgoing, then: sequel)
            }
        case .streaming:
            flushEvents()
        case .reading, .readingBody, .waiting, .draining, .closed:
            break
        }
    }
}
