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

    /// When what it was given gets into its file.
    enum Habit {
        /// gnome-keyring: at once, and it never syncs its directory.
        case atOnce
        /// KWallet: 5 s late.
        case late
        /// KeePassXC: each saving takes seconds, passes over what changes once it has read the entries,
        /// and counts that as saved.
        case passingOver
    }

    var condition = Condition.working

    let habit: Habit

    var writesAtOnce: Bool { habit == .atOnce }

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

    /// When the next writing of the file ends; nil if none goes on.
    private var flushAt: Int64?

    /// What that writes, where it is not what is live at its end.
    private var saving: Saving?

    /// How long savings take, and whether one of somebody else's goes on.
    private var random: SeededRandom

    /// One writing of the file by a keyring that passes over changes.
    private struct Saving {
        var readsAt: Int64
        var hasRead = false
        /// What it has read.
        var contents: StoredSession?
    }

    init(_ habit: Habit, seed: UInt64) {
        self.habit = habit
        random = SeededRandom(seed: seed)
    }

    mutating func write(_ session: StoredSession?, at time: Int64) {
        flush(at: time)
        let before = live
        live = session
        hasEmptyItem = false
        guard flushAt == nil else { return }
        switch habit {
        case .atOnce:
            // The kernel's own journal commits every few seconds; 30 is the longest default.
            flushAt = time + 30_000_000_000
        case .late:
            flushAt = time + 5_000_000_000
        case .passingOver where before == live:
            break  // The same bytes are no change.
        case .passingOver:
            save(before, at: time)
        }
    }

    /// Its own saving begins in 150 ms and derives a key for up to 5 s, unless one for somebody else's
    /// entry goes on, and has read what was there `before`.
    private mutating func save(_ before: StoredSession?, at time: Int64) {
        let isTooLate = random.isOne(in: 3)
        let readsAt = isTooLate ? time : time + random.time(160, 5150)
        saving = Saving(readsAt: readsAt, hasRead: isTooLate, contents: isTooLate ? before : nil)
        flushAt = readsAt + random.time(1, 2000)
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
        guard !writesAtOnce, let time = flushAt else { return }
        flushAt = time + span
        saving?.readsAt += span
    }

    mutating func sync() {
        guard writesAtOnce else { return }
        disk = live
        flushAt = nil
    }

    mutating func flush(at time: Int64) {
        if let present = saving, !present.hasRead, present.readsAt <= time {
            saving?.hasRead = true
            saving?.contents = live
        }
        guard let flushAt, flushAt <= time else { return }
        disk = saving.map(\.contents) ?? live
        endSaving()
    }

    private mutating func endSaving() {
        flushAt = nil
        saving = nil
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
        endSaving()
    }

    mutating func cutPower(at time: Int64) {
        belated = nil
        flush(at: time)
        live = disk
        endSaving()
    }

    /// The program is killed; what it gave the kernel stays.
    mutating func kill(at time: Int64) {
        belated = nil
        condition = .gone
        guard !writesAtOnce else { return }
        flush(at: time)
        live = disk
        endSaving()
    }

    /// Somebody puts another file in its place.
    mutating func replace(_ session: StoredSession?) {
        live = session
        disk = session
        hasEmptyItem = false
        endSaving()
    }
}
