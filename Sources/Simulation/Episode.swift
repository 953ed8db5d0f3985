internal import AgentCore
internal import SandboxRules

/// One user, one profile, one machine and one server, from a sign-in through a time of faults to a
/// quiet end.
///
/// Time is virtual. An exchange is an ordinary call that lets time pass in each of its steps, and
/// whatever else is due then happens within: a second exchange that wants the lock waits until the
/// first is over, as it would.
package final class Episode {
    package let seed: UInt64
    package let theme: Theme

    /// The first promise that was broken.
    package internal(set) var violation: Violation?
    package internal(set) var figures = Figures()

    let rates: FaultRates
    var random: SeededRandom
    var server: SimulatedServer
    let home: SimulatedHome
    var agent: SimulatedAgent?

    // MARK: Time

    /// Nanoseconds of true time, the server's.
    var time: Int64 = 0
    var bootedAt: Int64 = -3_600_000_000_000
    var turnedOffAt: Int64 = 0
    var bootNumber = 1
    var boot = BootID("boot 1")

    /// Milliseconds that our wall clock is ahead of the true time.
    var wallOffset: Int64 = 0

    var timers: [Timer] = []
    var nextClient: Int64 = 0
    var nextFault: Int64 = 0
    var lastResume: Int64 = 0

    /// For how long the machine has slept, in all.
    var slept: Int64 = 0
    var eventsAtOnce = 0

    /// The next event, once it is known.
    var cachedNext: Int64?

    /// After so many steps the faults stop.
    let stepBudget: Int

    // MARK: Processes

    var waiting: [SimulatedProcess] = []
    var running: [SimulatedProcess] = []

    /// The exchange whose request is in flight.
    var isPresenting: SimulatedProcess?

    // MARK: Circumstances

    /// Changed by a new configuration.
    var mode: RotationMachine.Mode

    /// What the server's lifetimes make of the hold, in nanoseconds.
    let hold: Int64

    /// Whether the machine is a container: its boot clock is its host's, which goes on from one boot of the
    /// container's to the next.
    let isContainer: Bool

    /// Whether the slot outlives canopyd and its exchanges, in the service manager's hands.
    let keepsDescriptors: Bool

    var networkDownUntil: Int64 = 0

    /// What every request gets for a while.
    var spell: (fault: Fault, until: Int64)?
    var isCalm = true
    var isOff = false

    /// Whether canopyd is being stopped, or is stopped, and the machine is on.
    var isStopped = false

    /// Whether keyring or home were restored, reset, deleted or copied since the last sign-in.
    var isDisturbed = false
    var wasEverRestored = false
    var disturbedAt: Int64 = 0
    var backup: (session: StoredSession?, signIns: KnownSignIns?)?
    var anchors: UInt64 = 0

    /// When something last went wrong, or was mended.
    var lastTrouble: Int64 = 0

    // MARK: What must hold

    /// Whether the last sign-in ended after its canopyd.
    var wasSignedInAlone = false

    /// By family number: the highest generation presented.
    var highest: [Int] = []
    var over: Set<SignInID> = []

    /// Those that somebody was told have succeeded.
    var toldSignIns: Set<SignInID> = []
    var families: [SignInID: FamilyID] = [:]
    var saidDead: Set<Int> = []

    /// The newest refresh token that was received, which must be somewhere; nil for none.
    var treasure: Int?

    /// When keyring or slot last lost what they held.
    var takenAt: Int64 = -1

    /// Until when the server asked us to wait, if nothing has happened since that may lose it.
    var toldUntil: Int64 = 0
    var toldFamily: FamilyID?

    private let isTraced: Bool
    private var trace: [String] = []

    /// `steps`: after so many the faults stop.
    package init(seed: UInt64, theme: Theme, steps: Int, isTraced: Bool = false) {
        self.seed = seed
        self.theme = theme
        self.isTraced = isTraced
        stepBudget = steps
        rates = theme.rates
        random = SeededRandom(seed: seed)
        var rules = ServerRules()
        rules.keepsHistory = false
        rules.throttlesSignIns = random.isOne(in: 2)
        rules.grace = .seconds([0, 10, 10, 30, 120][random.below(5)])
        rules.graceAnswer = random.isOne(in: 2) ? .sameSuccessor : .newSuccessor
        let lifetime: Int64 = [60, 300, 900, 900, 3600][random.below(5)]
        if random.isOne(in: 8) { rules.refreshTokenLifetime = .seconds(lifetime * 6 + 7200) }
        server = SimulatedServer(
            rules: rules, lifetime: lifetime, isStrict: random.isOne(in: 3))
        hold = RotationTiming.hold(lifetime: .seconds(lifetime)).nanoseconds
        let habits: [SimulatedKeyring.Habit] = [.atOnce, .atOnce, .atOnce, .late, .passingOver]
        var habit = habits[random.below(habits.count)]
        if rates.keyringWritesLate, habit == .atOnce { habit = .late }
        home = SimulatedHome(keyring: SimulatedKeyring(habit, seed: random.word()))
        mode = random.isOne(in: 5) ? .onDemand : .ahead
        keepsDescriptors = !random.isOne(in: 4)
        // Not drawn: whatever else happens under a seed is the same in both.
        isContainer = seed % 4 == 1
        if random.isOne(in: 4) { wallOffset = random.time(-400, 400) }
    }

    /// Runs it to its end.
    package func run() {
        figures.episodes += 1
        agent = SimulatedAgent(self, mode: mode)
        agent?.settle()
        advance(to: time + 2_000_000_000)
        isCalm = theme != .signIns
        agent?.wantSignIn()
        advance(to: time + 20_000_000_000)
        isCalm = false
        while figures.steps < stepBudget, violation == nil {
            advance(to: nextEvent)
        }
        endQuietly()
        if let violation {
            self.violation = Violation(
                rule: violation.rule, seed: seed, theme: theme, trace: trace)
        }
    }

    // MARK: Words

    func violate(_ rule: String) {
        guard violation == nil else { return }
        log("VIOLATION \(rule)")
        violation = Violation(rule: rule, seed: seed, theme: theme, trace: [])
    }

    func log(_ text: @autoclosure () -> String) {
        guard isTraced else { return }
        if trace.count > 400 { trace.removeFirst(200) }
        let seconds = Double(time / 1_000_000) / 1000
        trace.append("\(seconds) \(text())")
    }

    func draw() -> Double { random.draw() }

    func isOne(in count: Int) -> Bool { random.isOne(in: count) }
}
