internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem
internal import SandboxRules

/// The loop: one thread, and nobody waits for anybody else's answer.
struct Server: ~Copyable {
    private var listener: Listener
    private var canopy: Canopy
    private var connections: [Int: Connection] = [:]
    private var nextNumber = 0
    private var pending: [Pending] = []

    /// An answer, or a request, that waits.
    private struct Pending {
        let connection: Int
        let work: Work
        /// nil for what `POST /admin/release` lets go.
        let due: BootTime?

        enum Work {
            case send(Answer)
            /// The request takes effect then, whether or not its client is still there.
            case perform(HTTPRequest)
        }
    }

    init(listener: consuming Listener, canopy: consuming Canopy) {
        self.listener = listener
        self.canopy = canopy
    }

    /// Serves until the process ends.
    mutating func run() throws(SystemError) {
        while true {
            let numbers = connections.keys.sorted()
            var polled = numbers.compactMap { number in
                connections[number].map {
                    pollfd(fd: $0.descriptor.number, events: $0.interest, revents: 0)
                }
            }
            let listens = try listenOrRefuse()
            polled.append(
                pollfd(
                    fd: listens ? listener.descriptor.number : -1, events: Int16(POLLIN),
                    revents: 0))
            let ready = poll(&polled, nfds_t(polled.count), timeout)
            guard ready >= 0 || errno == EINTR else { throw .last("poll") }

            finishWhatIsDue()
            if ready > 0 {
                // Those that hang up before those that arrive: a client that gave up and came
                // again has one request in flight, not two.
                for (index, number) in numbers.enumerated() where polled[index].revents != 0 {
                    serve(number, polled[index].revents)
                }
                if polled[numbers.count].revents != 0 { accept() }
            }
        }
    }

    /// Milliseconds to the earliest pending work, rounded up; -1 for ever.
    private var timeout: Int32 {
        let times = pending.compactMap(\.due) + (canopy.refusesUntil.map { [$0] } ?? [])
        guard let due = times.min() else { return -1 }
        let wait = due - .now
        return Int32(clamping: max(0, (wait.nanoseconds + 999_999) / 1_000_000))
    }

    /// Follows the latest `POST /admin/refuse`; whether connections are taken.
    private mutating func listenOrRefuse() throws(SystemError) -> Bool {
        guard let end = canopy.refusesUntil else { return true }
        if end <= .now {
            canopy.refusesUntil = nil
            try listener.listen()
            return true
        }
        listener.refuse()
        return false
    }

    private mutating func accept() {
        while true {
            let number = clinux_accept(listener.descriptor.number)
            // EAGAIN, or a client that was gone before we came, or no descriptors: poll says
            // when there is another.
            guard number >= 0 else { return }
            let descriptor = FileDescriptor(owning: number)
            guard connections.count < Limits.sandboxConnections else { continue }
            connections[nextNumber] = Connection(number: nextNumber, descriptor: descriptor)
            nextNumber += 1
        }
    }

    private mutating func serve(_ number: Int, _ events: Int16) {
        guard let connection = connections[number] else { return }
        if events & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 { return drop(connection) }
        // A client that only closes its sending side counts as gone: HTTP clients do not.
        if events & Int16(POLLIN) != 0, !connection.receive() { return drop(connection) }
        advance(connection)
    }

    /// Handles the requests that have arrived whole, and sends.
    private mutating func advance(_ connection: Connection) {
        while !connection.isBusy, connections[connection.number] != nil {
            switch HTTPRequest.parse(connection.input) {
            case .incomplete:
                return transmit(connection)
            case .refused(let status, let reason):
                connection.keepsAlive = false
                connection.input = []
                let request = HTTPRequest(
                    method: "", path: "", headers: [:], body: [], keepsAlive: false)
                send(
                    canopy.failure(request, status, code: "http.malformed", reason),
                    to: connection)
                // What follows on this connection cannot be told apart from what was refused.
                connection.isBusy = true
                return transmit(connection)
            case .request(let request, let length):
                connection.input.removeFirst(length)
                begin(request, on: connection)
            }
        }
        if connections[connection.number] != nil { transmit(connection) }
    }

    private mutating func begin(_ request: HTTPRequest, on connection: Connection) {
        connection.isBusy = true
        connection.keepsAlive = request.keepsAlive
        if request.path.hasPrefix("/admin/") {
            let held = pending.count { $0.due == nil }
            if request.method == "POST", request.path == "/admin/release" { release() }
            let answer = canopy.admin(request, held: held, released: held)
            return send(answer, to: connection, isOwn: true)
        }
        connection.family = canopy.countArrival(request)
        switch canopy.handle(request) {
        case .answer(let answer): send(answer, to: connection)
        case .close: drop(connection)
        case .reset:
            connection.resetAtEnd()
            drop(connection)
        case .silence: break
        case .late(let answer, let lateness):
            wait(connection, lateness, .send(answer))
        case .deferred(let lateness):
            wait(connection, lateness, .perform(request))
        }
    }

    private mutating func wait(
        _ connection: Connection, _ lateness: Lateness, _ work: Pending.Work
    ) {
        let due: BootTime?
        switch lateness {
        case .milliseconds(let milliseconds): due = .now + .milliseconds(Int64(milliseconds))
        case .release: due = nil
        }
        pending.append(Pending(connection: connection.number, work: work, due: due))
    }

    private mutating func finishWhatIsDue() {
        guard !pending.isEmpty else { return }
        let now = BootTime.now
        finish { $0.due.map { $0 <= now } ?? false }
    }

    private mutating func release() {
        finish { $0.due == nil }
    }

    private mutating func finish(_ isTime: (Pending) -> Bool) {
        let finished = pending.filter(isTime)
        pending.removeAll(where: isTime)
        for item in finished {
            let answer =
                switch item.work {
                case .send(let answer): answer
                case .perform(let request): canopy.answer(request)
                }
            // The client may have given up in the meantime.
            guard let connection = connections[item.connection] else { continue }
            send(answer, to: connection)
            advance(connection)
        }
    }

    /// `isOwn`: to a request of the sandbox's own, which nothing spoils.
    private mutating func send(_ answer: Answer, to connection: Connection, isOwn: Bool = false) {
        leave(connection)
        var answer = answer
        answer.hasStrayHeaders = canopy.wire.sendsStrayHeaders && !isOwn
        // A body that is shorter than its head says can only be followed by the end.
        let goesOn = connection.keepsAlive && (answer.claimedLength == nil || answer.staysOpen)
        connection.queue(
            answer.bytes(at: canopy.now, keepsAlive: goesOn), thenEnd: !goesOn)
        connection.isBusy = !goesOn
    }

    private mutating func leave(_ connection: Connection) {
        if let family = connection.family { canopy.ledger.requestLeft(family) }
        connection.family = nil
    }

    private mutating func transmit(_ connection: Connection) {
        if !connection.transmit() { drop(connection) }
    }

    private mutating func drop(_ connection: Connection) {
        leave(connection)
        connections[connection.number] = nil
    }
}
