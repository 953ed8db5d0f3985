internal import AgentCore

/// One exchange: waiting to be run, running, or over.
final class SimulatedProcess {
    enum Job {
        case load
        case rotate(mayPresent: Bool)
        case signIn
        case signOut(isLocal: Bool)

        var kind: JobKind {
            switch self {
            case .load: .load
            case .rotate: .rotate
            case .signIn: .signIn
            case .signOut: .signOut
            }
        }
    }

    let job: Job
    let known: Generation?

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

    /// The lock's patience, as in canopyd-exchange.
    static let lockPatience: Int64 = 15_000_000_000

    init(_ job: Job, known: Generation?, agent: SimulatedAgent?, readyAt: Int64, deadline: Int64) {
        self.job = job
        self.known = known
        self.agent = agent
        self.readyAt = readyAt
        self.deadline = deadline
        lockDeadline = readyAt + SimulatedProcess.lockPatience
    }

    var needsLock: Bool {
        switch job {
        case .load: false
        case .rotate, .signIn, .signOut: true
        }
    }
}
