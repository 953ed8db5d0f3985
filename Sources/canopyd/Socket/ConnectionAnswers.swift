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
        guard let reply = connections.agent.preparedToken(wish, at: now) else { return false }
        let sent = reply.withBytes { socket.send($0) }
        connections.answered(.token, status: 200, after: .now - now.boot)
        guard let sent else {
            close()
            return true
        }
        if sent < reply.count {
            connections.operations.add(self, at: .now)
            phase = .writing(
                OutgoingReply(head: [], .secret(reply), sent: sent), thenCloses: false)
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
        let closes = !request.keepAlive || connections.isStopping
        connections.head.removeAll(keepingCapacity: true)
        reply.appendHead(to: &connections.head, closes: closes)
        var outgoing = OutgoingReply(
            head: connections.head, request.isHead ? .none : reply.body)
        guard outgoing.send(on: socket) else { return close() }
        guard outgoing.isSent else {
            connections.operations.add(self, at: .now)
            phase = .writing(outgoing, thenCloses: closes)
            return wait(for: .writable)
        }
        answerSent(thenCloses: closes, drains: drains)
    }

    private func answerSent(thenCloses closes: Bool, drains: Bool = false) {
        guard !closes else {
            guard drains else { return close() }
            socket.endSending()
            connections.operations.add(self, at: .now)
            phase = .draining(left: Limits.requestDrainBytes)
            return wait(for: .readable)
        }
        phase = .reading
        wait(for: .readable)
        if pending.count > 0 {
            isQueued = true
            connections.queue(self)
        }
    }

    /// Goes on where the socket took no more.
    func resumeSending() {
        switch phase {
        case .writing(var outgoing, let closes):
            guard outgoing.send(on: socket) else { return close() }
            if outgoing.isSent {
                endDeadline()
                answerSent(thenCloses: closes)
            } else {
                phase = .writing(outgoing, thenCloses: closes)
            }
        case .streaming:
            flushEvents()
        case .reading, .readingBody, .waiting, .draining, .closed:
            break
        }
    }
}
