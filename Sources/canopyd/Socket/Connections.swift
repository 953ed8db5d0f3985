internal import AgentCore
internal import CLinux
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

    /// Clients that were not let in and are reading why.
    private var turnedAway: [ClientID: Connection] = [:]
    private var lastNumber: UInt64 = 0

    /// Connections with a request in their own buffer, which no readiness will announce, and how
    /// many of them have been served.
    private var ready: [Connection] = []
    private var readyServed = 0

    /// Bytes that connections keep of requests that are not all there, or not served yet.
    var pendingBytes = 0 {
        didSet { pendingPeak = max(pendingPeak, pendingBytes) }
    }

    /// The most of them since memory was last given back.
    private var pendingPeak = 0

    /// Sign-ins on their way, by the connection that sends them or waits for the answer.
    private var secrets = 0

    /// The most connections since memory was last given back.
    private var peak = 0

    /// Requests that are not all there, and replies that are not all sent.
    let operations = Deadlines(.seconds(Int64(Limits.connectionOperationSeconds)))

    /// Clients that were not let in, until they have read why.
    let farewells = Deadlines(.seconds(Int64(Limits.farewellSeconds)))

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

    /// Who the client is; nil once it is gone.
    func caller(of client: ClientID) -> Caller? { open[client]?.caller }

    /// Serves the peer of `descriptor`, which is closed when that is over; returns whether it has
    /// asked already, and is there to be answered.
    func add(_ descriptor: Int32, _ peer: PeerCredentials) -> Bool {
        lastNumber += 1
        let id = ClientID(number: lastNumber)
        let caller = Caller(peer, on: descriptor, since: .now)
        let connection = Connection(id, caller, descriptor, self)
        open[id] = connection
        peak = max(peak, open.count)
        // Most clients have sent their request by now. Whoever is gone by now, or wants one answer,
        // costs no watching.
        let hasAsked = connection.receive()
        guard !connection.isClosed else { return hasAsked && !connection.isForsaken }
        do throws(SystemError) {
            try connection.start(loop)
        } catch {
            Journal.write(.connectionRefused, (.error, error.description))
            connection.close()
        }
        return hasAsked
    }

    /// Tells the peer of `descriptor` why it is not let in; it is closed when the peer has read it.
    ///
    /// Of too many such peers the first ones are cut off.
    func turnAway(_ descriptor: Int32, _ problem: Problem) throws(SystemError) {
        while turnedAway.count >= Limits.farewells, let first = farewells.first { first.close() }
        lastNumber += 1
        let id = ClientID(number: lastNumber)
        let caller = Caller(.unasked, on: descriptor, since: .now)
        let connection = Connection(id, caller, descriptor, self)
        try connection.start(loop)
        turnedAway[id] = connection
        connection.turnAway(problem)
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
        if turnedAway.removeValue(forKey: id) == nil { open[id] = nil }
        closed()
        giveMemoryBack()
    }

    /// Gives to the system what a crowd has left: the allocator would keep it for the next one.
    private func giveMemoryBack() {
        let hasCrowdLeft = peak >= Limits.crowd && open.count <= peak / 4
        let hasMuchBeenFreed = pendingPeak >= Limits.crowdBytes && pendingBytes <= pendingPeak / 4
        guard hasCrowdLeft || hasMuchBeenFreed else { return }
        peak = open.count
        pendingPeak = pendingBytes
        var left = [ClientID: Connection](minimumCapacity: open.count)
        left.merge(open) { one, _ in one }
        open = left
        if ready.isEmpty { ready = [] }
        clinux_give_memory_back()
    }

    // MARK: Memory

    /// Closes the connections that have taken longest over a request or an answer, until what is
    /// kept of requests is within its limit; returns whether it is.
    @discardableResult
    func makeRoom() -> Bool {
        while pendingBytes > Limits.pendingBytes, let slowest = operations.first {
            slowest.close()
        }
        return pendingBytes <= Limits.pendingBytes
    }

    /// Counts one more body that holds a secret, unless the client has one already; false if there
    /// are too many.
    func mayHoldSecret(_ hasOne: Bool) -> Bool {
        if hasOne { return true }
        guard secrets < Limits.secretBodies else { return false }
        secrets += 1
        return true
    }

    func releaseSecret() { secrets -= 1 }

    func answered(_ route: Route.Label, status: Int, after span: TimeSpan) {
        statistics.answered(route, status: status, after: span)
    }

    // MARK: The loop's turn

    /// Whether a request is waiting to be served.
    var hasWork: Bool { readyServed < ready.count }

    /// The earliest deadline.
    var wakeUp: BootTime? {
        earlier(earlier(operations.next, keepAlives.next), farewells.next)
    }

    func queue(_ connection: Connection) {
        ready.append(connection)
    }

    /// Serves one request of each of the few connections that have waited longest with one in their
    /// buffer; then it is the turn of those that wait in the kernel.
    func serveReady() {
        // Nearly always; and everything asked of this object here is asked for each request.
        guard hasWork else { return }
        for _ in 0..<Limits.bufferedRequestsPerTurn where hasWork {
            let connection = ready[readyServed]
            readyServed += 1
            connection.serveBuffered()
        }
        // Half of them at a time, so that moving the rest costs little for each.
        if readyServed * 2 >= ready.count {
            ready.removeFirst(readyServed)
            readyServed = 0
        }
    }

    func wake(at now: BootTime) {
        while let connection = operations.expired(at: now) { connection.close() }
        while let connection = farewells.expired(at: now) { connection.close() }
        while let connection = keepAlives.expired(at: now) { connection.sendKeepAlive() }
    }

    // MARK: The end

    /// Closes what is idle; what waits for an answer gets it, and is closed then.
    func stop() {
        isStopping = true
        for connection in Array(open.values) where connection.isIdle { connection.close() }
        for connection in Array(turnedAway.values) { connection.close() }
    }

    /// Whether a reply is still on its way.
    var isSending: Bool { open.values.contains { $0.isSending } }
}
