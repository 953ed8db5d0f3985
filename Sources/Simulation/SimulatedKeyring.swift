internal import AgentCore

/// A Secret Service: what it says, and what a power cut would leave of it.
struct SimulatedKeyring {
    enum Condition {
        case working
        case locked
        case gone
        /// Each call fails after its deadline.
        case hanging
    }

    var condition = Condition.working

    /// gnome-keyring writes at once and never syncs its directory; KWallet writes 5 s late.
    let writesAtOnce: Bool

    /// Whether stores are acknowledged and forgotten.
    var dropsWrites = false

    /// What a read returns.
    private(set) var live: StoredSession? {
        didSet { token = live.map { Answers.number($0.refreshToken) } }
    }

    /// The number of the refresh token in ``live``; nil for none.
    private(set) var token: Int?

    /// Whether there is an item with an empty secret, which is no item to a reader.
    private(set) var hasEmptyItem = false

    /// What a power cut leaves.
    private(set) var disk: StoredSession?

    /// When what is live will be on the disk by itself; nil if it is there.
    private var flushAt: Int64?

    init(writesAtOnce: Bool) {
        self.writesAtOnce = writesAtOnce
    }

    mutating func write(_ session: StoredSession?, at time: Int64) {
        flush(at: time)
        live = session
        hasEmptyItem = false
        // The kernel's own journal commits every few seconds; 30 is the longest default.
        if flushAt == nil { flushAt = time + (writesAtOnce ? 30 : 5) * 1_000_000_000 }
    }

    /// A new item is begun, and its secret never comes.
    mutating func leaveEmptyItem() {
        guard live == nil else { return }
        hasEmptyItem = true
    }

    /// A call that nobody waits for any more, done when the keyring answers again.
    private var belated: StoredSession??

    mutating func writeLater(_ session: StoredSession?) {
        belated = .some(session)
    }

    mutating func recover(at time: Int64) {
        condition = .working
        guard let belated else { return }
        self.belated = nil
        write(belated, at: time)
    }

    /// The machine slept: the clock by which KWallet writes did, too.
    mutating func sleep(for span: Int64) {
        if !writesAtOnce, let time = flushAt { flushAt = time + span }
    }

    mutating func sync() {
        guard writesAtOnce else { return }
        disk = live
        flushAt = nil
    }

    mutating func flush(at time: Int64) {
        guard let flushAt, flushAt <= time else { return }
        disk = live
        self.flushAt = nil
    }

    /// The machine stops in order: the kernel writes what it was given, and KWallet gives it nothing.
    mutating func shutDown(at time: Int64) {
        belated = nil
        if writesAtOnce {
            disk = live
        } else {
            flush(at: time)
            live = disk
        }
        flushAt = nil
    }

    mutating func cutPower(at time: Int64) {
        belated = nil
        flush(at: time)
        live = disk
        flushAt = nil
    }

    /// The program is killed; what it gave the kernel stays.
    mutating func kill(at time: Int64) {
        belated = nil
        condition = .gone
        guard !writesAtOnce else { return }
        flush(at: time)
        live = disk
        flushAt = nil
    }

    /// Somebody puts another file in its place.
    mutating func replace(_ session: StoredSession?) {
        live = session
        disk = session
        hasEmptyItem = false
        flushAt = nil
    }
}
