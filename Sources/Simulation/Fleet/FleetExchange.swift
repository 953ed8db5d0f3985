internal import AgentCore

/// What an exchange of one agent of a fleet touches: a keyring and a state directory that always
/// work, and the server.
///
/// One object serves all agents in turn. An exchange runs from its start to its end before the next
/// event is looked at; its requests are counted in the seconds in which they are sent.
final class FleetExchange: ExchangeWorld {
    typealias Interruption = Never

    let boot = BootID("fleet")
    let memory = Answers.memory
    var server: FleetServer
    var random: SeededRandom

    /// Nanoseconds since the start of the run.
    var time: Int64 = 0

    /// The agent whose exchange runs.
    var agent: FleetAgent
    private var item: StoredSession
    private let refreshToken = Answers.secret("r1")

    /// The boot clock at the start: no agent has just been switched on.
    static let uptime: Int64 = 30 * 86_400 * 1_000_000_000

    init(_ plan: FleetPlan) {
        server = FleetServer(plan)
        random = SeededRandom(seed: plan.seed)
        let first = FleetAgent.header
        item = StoredSession(header: first, refreshToken: refreshToken, accessToken: nil)
        agent = FleetAgent(boot: boot)
    }

    /// Runs the exchange that `rotating` wants at `time`; the agent after it.
    func run(_ rotating: FleetAgent, mayPresent: Bool, at start: Int64) -> FleetAgent {
        agent = rotating
        time = start
        guard var header = agent.machine.session else {
            preconditionFailure("an agent of a fleet is signed in")
        }
        header.notBefore = agent.notBefore
        item = StoredSession(
            header: header, refreshToken: refreshToken, accessToken: agent.machine.access)
        agent.machine.exchangeBegan(.rotate, at: now().boot)
        let outcome = Rotation(
            in: self, known: agent.machine.session?.position, mayPresent: mayPresent
        ).run()
        agent.machine.exchangeEnded(outcome, at: now(), draw: random.draw())
        agent.notBefore = item.header.notBefore
        return agent
    }

    func draw() -> Double { random.draw() }

    func now() -> Moment { FleetExchange.moment(time) }

    static func moment(_ time: Int64) -> Moment {
        Moment(boot: BootTime(nanoseconds: uptime + time), wall: SimulatedServer.now(time))
    }

    func pause(for span: TimeSpan) { time += span.nanoseconds }
    func pause(awakeFor span: TimeSpan) { pause(for: span) }

    func lock() -> Bool { true }
    func readSlot() -> SlotContents { .empty }
    func fillSlot(_ session: StoredSession) -> Bool { true }
    func emptySlot() {}
    var isSlotKept: Bool { true }

    func readItem(knowing signIns: KnownSignIns?) -> Reading<ItemContents> {
        .found(.session(item))
    }

    func writeItem(_ session: StoredSession) -> Failure? {
        item = session
        return nil
    }

    func syncKeyring() -> Failure? { nil }
    func deleteItem() -> Failure? { nil }
    var keyringWritesAtOnce: Bool { true }
    var holdsUnreadableItem: Bool { false }

    func readState() -> Reading<StateContents> {
        var marks: [SignInID: Int64] = [:]
        marks[FleetAgent.header.signIn] = agent.mark
        return .found(
            StateContents(
                signIns: KnownSignIns(current: FleetAgent.header.signIn, marks: marks),
                runtimeMarks: [:], anchor: FleetAgent.header.anchor))
    }

    func writeSignIns(_ signIns: KnownSignIns) -> Failure? {
        agent.mark = signIns.mark(of: FleetAgent.header.signIn)
        return nil
    }

    func makeAnchor() -> Reading<Anchor> { .found(FleetAgent.header.anchor) }

    func present(_ refreshToken: Secret, to baseURL: String) -> Transmission {
        let (transmission, took) = server.answer(at: time)
        time += took
        return transmission
    }

    func signIn(at baseURL: String, publishableKey: String) -> Transmission {
        preconditionFailure("an agent of a fleet is signed in")
    }

    func signOut(
        _ accessToken: Secret, naming refreshToken: Secret?, at baseURL: String
    ) -> Transmission {
        preconditionFailure("an agent of a fleet stays signed in")
    }

    func announce(_ progress: ExchangeProgress) {
        agent.machine.exchangeProgressed(progress, at: now())
    }
}
