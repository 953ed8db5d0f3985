internal import AgentCore
internal import LinuxSystem

/// Names a connection; a number is never used twice, so that late news finds nobody.
struct ClientID: Hashable {
    let number: UInt64
}

/// The open connections, and what they share: buffers, deadlines, the order in which they are
/// served.
final class Connections {
    let agent: Agent
    private let loop: EventLoop
    private var open: [ClientID: Connection] = [:]
    private var lastNumber: UInt64 = 0

    /// Connections with a request in their own buffer, which no readiness will announce.
    private var ready: [Connection] = []

    /// Requests that are not all there, and replies that are not all sent.
    let operations = Deadlines(.seconds(Int64(Limits.connectionOperationSeconds)))

    /// Subscribers that are up to date.
    let keepAlives = Deadlines(.seconds(Int64(Limits.eventKeepAliveSeconds)))

    /// What is read from any connection, for the length of one handler.
    ///
    /// It is secret memory: sign-ins pass through it.
    let input = SecretMemory.locked.allocate(Limits.connectionReadBytes)

    /// The head of the reply that is being sent.
    ///
    /// It holds no secret.
    var head: [UInt8] = []

    /// What was asked last, for answering it from memory.
    var recent = RecentRequests(in: .locked)

    private(set) var statistics = RequestStatistics()
    private(set) var isStopping = false

    /// Called whenever a connection has closed.
    var closed: () -> Void = {}

    init(_ loop: EventLoop, _ agent: Agent) {
        self.loop = loop
        self.agent = agent
        head.reserveCapacity(512)
    }

    deinit { SecretMemory.locked.release(input) }

    var count: Int { open.count }

    /// Serves the peer of `descriptor`, which is closed when that is over.
    func add(_ descriptor: Int32) throws(SystemError) {
        lastNumber += 1
        let id = ClientID(number: lastNumber)
        let connection = Connection(id, descriptor, self)
        try connection.start(loop)
        open[id] = connection
        // Most clients have sent their request by now.
        connection.receive()
    }

    /// The answer to a request that waited.
    ///
    /// A client that is gone meanwhile is nobody.
    func deliver(_ client: ClientID, _ reply: Reply) {
        open[client]?.answer(reply)
    }

    /// One event for a subscriber; it replaces one of the same key that is not sent yet.
    func publish(_ client: ClientID, _ event: [UInt8], coalescingKey key: String) {
        open[client]?.publish(event, key)
    }

    func forget(_ id: ClientID) {
        open[id] = nil
        closed()
    }

    func answered(_ route: Route.Label, status: Int, after span: TimeSpan) {
        statistics.answered(route, status: status, after: span)
    }

    // MARK: The loop's turn

    /// Whether a request is waiting to be served.
    var hasWork: Bool { !ready.isEmpty }

    /// The earliest deadline.
    var wakeUp: BootTime? {
        guard let operation = operations.next else { return keepAlives.next }
        return keepAlives.next.map { min($0, operation) } ?? operation
    }

    func queue(_ connection: Connection) {
        ready.append(connection)
    }

    /// Serves one request of each connection that has one in its buffer.
    func serveReady() {
        guard !ready.isEmpty else { return }
        let now = ready
        ready.removeAll()
        for connection in now { connection.serveBuffered() }
    }

    func wake(at now: BootTime) {
        while let connection = operations.expired(at: now) { connection.close() }
        while let connection = keepAlives.expired(at: now) { connection.sendKeepAlive() }
    }

    // MARK: The end

    /// Closes what is idle; what waits for an answer gets it, and is closed then.
    func stop() {
        isStopping = true
        for connection in Array(open.values) where connection.isIdle { connection.close() }
    }

    /// Whether a reply is still on its way.
    var isSending: Bool { open.values.contains { $0.isSending } }
}
