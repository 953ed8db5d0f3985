import AgentCore

/// A world that does what the script says, writes down each call, and enforces the order that
/// makes a rotation safe: what breaks it is in ``violations``.
///
/// What survives an exchange (keyring, slot, state directory, server) stays when a kill is thrown,
/// so that the next exchange in the same world finds it.
final class ScriptedWorld: ExchangeWorld {
    struct Killed: Error {}

    let boot = Example.boot
    let memory = SecretMemory.ordinary

    // What survives.
    var slot: SlotContents = .empty
    var item: ItemContents = .none
    var signIns: KnownSignIns?
    var runtimeMarks: [SignInID: Int64] = [:]
    var anchor: Anchor? = Example.anchor
    /// Whether the state file names another file than itself, as one from a backup does.
    var isStateCopy = false
    var server = ScriptedServer()

    // The script.
    var isLockFree = true
    var canFillSlot = true
    var isSlotKept = true
    var keyringWritesAtOnce = true
    /// Whether the item of which a fault says that it cannot be read is there to be deleted.
    var holdsUnreadableItem = false
    var drawn = 0.0
    /// Calls that start with the text fail so many times.
    var faults: [(call: String, times: Int, failure: Failure)] = []
    /// Answers that come before the server's own.
    var answers: [Transmission] = []
    /// What comes of a request that is sent at so many seconds, before all others; nil lets it
    /// through.
    var network: (Double) -> Transmission? = { _ in nil }
    /// The call after whose effect the process is killed, counted from 1.
    var killedAfter: Int?
    /// Runs before the call that starts with the text.
    var interference: (call: String, act: (ScriptedWorld) -> Void)?

    // What was seen.
    private(set) var calls: [String] = []
    private(set) var written: [KnownSignIns] = []
    private(set) var violations: [String] = []
    private(set) var elapsed = 0.0
    private var hasLock = false
    private var hasAnnounced = false
    private var isSynced = true

    init(_ session: StoredSession? = nil, marked: Int64? = nil) {
        guard let session else { return }
        item = .session(session)
        signIns = KnownSignIns(
            current: session.header.signIn,
            marks: marked.map { [session.header.signIn: $0] } ?? [:],
            account: session.header.account)
        server.issued[session.header.signIn] = session.header.generation
    }

    /// Another exchange: what the last one remembered is gone.
    func restart(after seconds: Double = 0) {
        calls = []
        killedAfter = nil
        hasLock = false
        hasAnnounced = false
        elapsed += seconds
    }

    func count(_ call: String) -> Int {
        calls.count { $0.hasPrefix(call) }
    }

    var heldSession: StoredSession? {
        if case .session(let session) = item { session } else { nil }
    }

    var isSlotEmpty: Bool {
        if case .empty = slot { true } else { false }
    }

    private func fault(_ call: String) -> Failure? {
        guard let index = faults.firstIndex(where: { call.hasPrefix($0.call) && $0.times > 0 })
        else { return nil }
        faults[index].times -= 1
        return faults[index].failure
    }

    private func begin(_ call: String) {
        if let interference, call.hasPrefix(interference.call) {
            self.interference = nil
            interference.act(self)
        }
        calls.append(call)
    }

    private func end() throws(Killed) {
        if calls.count == killedAfter { throw Killed() }
    }

    // MARK: The world

    func draw() -> Double { drawn }
    func now() -> Moment { Example.moment(elapsed) }

    func pause(awakeFor span: TimeSpan) throws(Killed) { try pause(for: span) }

    func pause(for span: TimeSpan) throws(Killed) {
        begin("pause \(span.seconds)")
        elapsed += span.seconds
        if calls.count > 5000 { violations.append("it goes on for ever") }
        guard violations.isEmpty else { throw Killed() }
        try end()
    }

    func lock() throws(Killed) -> Bool {
        begin("lock")
        hasLock = isLockFree
        try end()
        return isLockFree
    }

    func readSlot() throws(Killed) -> SlotContents {
        begin("read slot")
        try end()
        return slot
    }

    func fillSlot(_ session: StoredSession) throws(Killed) -> Bool {
        begin("fill slot \(session.header.generation)")
        if canFillSlot { slot = .session(session) }
        try end()
        return canFillSlot
    }

    func emptySlot() throws(Killed) {
        begin("empty slot")
        if case .session(let successor) = slot, heldSession == successor, !isSynced {
            violations.append("the slot was emptied before the item was safe")
        }
        slot = .empty
        try end()
    }

    func readItem(knowing signIns: KnownSignIns?) throws(Killed) -> Reading<ItemContents> {
        begin("read item")
        let failure = fault("read item")
        try end()
        return failure.map { .failed($0) } ?? .found(item)
    }

    func writeItem(_ session: StoredSession) throws(Killed) -> Failure? {
        let call = "write item \(session.header.generation)"
        begin(call)
        let failure = fault(call)
        if failure == nil {
            item = .session(session)
            isSynced = false
        }
        try end()
        return failure
    }

    func syncKeyring() throws(Killed) -> Failure? {
        begin("sync")
        let failure = fault("sync")
        if failure == nil { isSynced = true }
        try end()
        return failure
    }

    func deleteItem() throws(Killed) -> Failure? {
        begin("delete item")
        let failure = fault("delete item")
        if failure == nil { item = .none }
        try end()
        return failure
    }

    func readState() throws(Killed) -> Reading<StateContents> {
        begin("read state")
        let failure = fault("read state")
        try end()
        return failure.map { .failed($0) }
            ?? .found(
                StateContents(
                    signIns: signIns, runtimeMarks: runtimeMarks,
                    anchor: isStateCopy ? nil : anchor))
    }

    func writeSignIns(_ signIns: KnownSignIns) throws(Killed) -> Failure? {
        begin("write sign-ins")
        let failure = fault("write sign-ins")
        if failure == nil {
            self.signIns = signIns
            isStateCopy = false
            runtimeMarks = signIns.marks
            written.append(signIns)
        }
        try end()
        return failure
    }

    func makeAnchor() throws(Killed) -> Reading<Anchor> {
        begin("make anchor")
        let failure = fault("make anchor")
        let made = anchor ?? Example.anchor
        if failure == nil { anchor = made }
        try end()
        return failure.map { .failed($0) } ?? .found(made)
    }

    func present(_ refreshToken: Secret, to baseURL: String) throws(Killed) -> Transmission {
        let name = text(refreshToken) ?? ""
        begin("present \(name)")
        if !hasLock { violations.append("presented without the lock") }
        if !hasAnnounced { violations.append("presented unannounced") }
        if !isSynced { violations.append("presented before the item was safe") }
        if baseURL != heldSession?.header.baseURL { violations.append("presented elsewhere") }
        if let held = heldSession?.header {
            if name != Example.refreshToken(held.generation, of: held.signIn) {
                violations.append("presented something else than the keyring holds")
            }
            if signIns?.mark(of: held.signIn) != held.generation {
                violations.append("presented without a mark")
            }
        }
        let transmission =
            network(elapsed)
            ?? (answers.isEmpty ? server.present(name) : answers.removeFirst())
        try end()
        return transmission
    }

    func signIn(at baseURL: String, publishableKey: String) throws(Killed) -> Transmission {
        begin("sign in")
        if !hasLock { violations.append("signed in without the lock") }
        let transmission = answers.isEmpty ? server.signIn() : answers.removeFirst()
        try end()
        return transmission
    }

    func signOut(
        _ accessToken: Secret, naming refreshToken: Secret?, at baseURL: String
    ) throws(Killed) -> Transmission {
        begin("sign out \(text(refreshToken) ?? "{}")")
        let transmission = answers.isEmpty ? server.signOut() : answers.removeFirst()
        try end()
        return transmission
    }

    func announce(_ progress: ExchangeProgress) throws(Killed) {
        switch progress {
        case .presenting:
            begin("presenting")
            hasAnnounced = true
        case .retrying(let failure):
            begin("retrying \(failure.kind)")
        }
        try end()
    }
}

/// Canopy's rules in the small: single use, a grace for the predecessor of a token that nobody
/// presented, and the end of everything for an older one.
struct ScriptedServer {
    /// By sign-in, the newest generation that was handed out.
    var issued: [SignInID: Int64] = [:]
    /// Sign-ins in the order in which `signIn` hands them out.
    var next: [SignInID] = []
    private(set) var isFamilyEnded = false
    /// Whether the server has ended the session, at somebody's wish.
    var isSessionOver = false
    private(set) var signOuts = 0

    mutating func present(_ name: String) -> Transmission {
        if isSessionOver { return Example.envelope(401, "over") }
        for (signIn, newest) in issued {
            if name == Example.refreshToken(newest, of: signIn) {
                issued[signIn] = newest + 1
                return ScriptedServer.grant(newest + 1, of: signIn)
            }
            if name == Example.refreshToken(newest - 1, of: signIn) {
                return ScriptedServer.grant(newest, of: signIn)
            }
        }
        isFamilyEnded = true
        return Example.envelope(401, "reuse")
    }

    mutating func signIn() -> Transmission {
        let signIn = next.removeFirst()
        issued[signIn] = 0
        return ScriptedServer.grant(0, of: signIn)
    }

    mutating func signOut() -> Transmission {
        signOuts += 1
        if isSessionOver { return Example.envelope(401, "over") }
        return Example.answer(200, "{}")
    }

    static func grant(_ generation: Int64, of signIn: SignInID) -> Transmission {
        Example.answer(
            200,
            """
            {"data":{"access_token":"access-\(generation)","token_type":"Bearer",\
            "expires_in":900,"refresh_token":"\(Example.refreshToken(generation, of: signIn))",\
            "identity":{"id":"id_1","email":"ada@example.org"}}}
            """)
    }
}
