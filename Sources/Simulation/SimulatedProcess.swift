internal import AgentCore

/// One exchange: waiting to be run, running, or over.
final class SimulatedProcess {
    enum Job {
        case load
        case rotate(mayPresent: Bool, isLast: Bool = false)
        case signIn
        case signOut(isLocal: Bool)
        /// Asks the server something, or to end the session, with an access token.
        case question(Secret, revokes: Bool)

        var kind: JobKind {
            switch self {
            case .load: .load
            case .rotate: .rotate
            case .signIn: .signIn
            case .signOut: .signOut
            case .question(_, let revokes): revokes ? .revokeSession : .identity
            }
        }

        /// Whether it may come between a killed rotation and its repetition: what ends the session
        /// anyway may, and what could make the repetition miss the server's grace may not.
        var mayPrecedeRepetition: Bool {
            switch self {
            case .load, .rotate, .signOut: true
            case .question, .signIn: false
            }
        }
    }

    let job: Job
    let known: Generation?

    /// For how long the slot still keeps what was reported as stored; nil if nothing was.
    var slotKeptFor: TimeSpan?
    var isSlotRewritten = false

    /// The slot that was handed to it, which it keeps alive.
    let slot: SimulatedSlot

    /// When it has got ready.
    let readyAt: Int64

    /// When it gives up waiting for the lock.
    let lockDeadline: Int64

    /// When canopyd ends it, in the true time; nil once it may not be ended.
    var deadline: Int64?

    /// Whom it reports to; nil once canopyd is gone and the exchange goes on alone.
    var agent: SimulatedAgent?
    var isRunning = false
    var isKilled = false
    var isPresenting = false

    /// The number of a refresh token that it received and has in its memory.
    var received: Int?

    /// Whether what it received is not in the slot yet.
    var isUnslotted = false

    /// Whether the slot could not be written, so that this process alone has what it received.
    var isSlotRefused = false

    /// The session that was stored and alive when it took the lock; nil if none was.
    var target: SimulatedServer.Family?

    /// How often its requests failed, by cause.
    var failures: [Failure.Kind: Int] = [:]

    /// The lock's patience, as in canopyd-exchange.
    static let lockPatience: Int64 = 15_000_000_000

    init(
        _ job: Job, known: Generation?, slot: SimulatedSlot, agent: SimulatedAgent?,
        readyAt: Int64, deadline: Int64
    ) {
        self.job = job
        self.known = known
        self.slot = slot
        self.agent = agent
        self.readyAt = readyAt
        self.deadline = deadline
        lockDeadline = readyAt + SimulatedProcess.lockPatience
    }

    var needsLock: Bool {
        switch job {
        case .load, .question: false
        case .rotate, .signIn, .signOut: true
        }
    }
}
