internal import AgentCore
internal import LinuxSystem

/// A client that is told of changes.
extension Connection {
    func subscribe(to profile: ProfileName?, _ request: Request) {
        if let problem = connections.agent.refusal(ofEventsOf: profile) {
            return answer(Reply(problem))
        }
        guard !request.isHead else { return answer(Reply.events) }
        let initial = connections.agent.subscribe(id, profile: profile)
        connections.answered(.events, status: 200, after: .now - request.began)
        var start: [UInt8] = []
        Reply.events.appendHead(to: &start, closes: true, date: .now)
        dropPending()
        phase = .streaming
        events.add(start, key: "head")
        events.add(initial, key: "present states")
        flushEvents()
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

    /// Sends what the socket takes of the events that wait.
    func flushEvents() {
        let hadUnsent = awaited == .writable
        while let bytes = events.current {
            let sent = bytes.withUnsafeBytes { bytes in
                socket.send(UnsafeRawBufferPointer(rebasing: bytes[events.sent...]))
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
}
