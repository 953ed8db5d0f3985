internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Keeps the machine awake while a refresh token may be spent and its successor not stored, and
/// says when the machine is about to sleep.
///
/// logind delays sleep and shutdown for as long as a descriptor of it is open, 5 s by default: it
/// narrows the risk and does not remove it. Where there is no logind, nothing is delayed. Where it,
/// or the bus, goes away and comes back, what it is about is asked anew: what it would have said
/// meanwhile was said to nobody.
final class SleepInhibitor {
    /// The machine woke up.
    var onResume: () -> Void = {}

    /// ``wakeUp`` is another one now.
    var onWakeUpChange: () -> Void = {}

    /// Whether sleep or shutdown is under way: nothing is to be started.
    private(set) var isPreparing = false

    private static let service = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let interface = "org.freedesktop.login1.Manager"

    /// What logind says when the sleep or shutdown that was to be delayed has begun.
    private static let inProgress = "org.freedesktop.login1.OperationInProgress"

    /// The waits before the bus is looked for again after it was lost: some two minutes in all.
    ///
    /// A bus that does not come back by then is looked for at each rotation, and a machine that
    /// never had one is not woken for it.
    private static let reconnections: [TimeSpan] = [1, 2, 4, 8, 16, 32, 64].map(TimeSpan.seconds)

    private let loop: EventLoop
    private var bus: Bus?
    /// The last one, which may still be telling us that it was lost.
    private var lost: Bus?
    private var descriptor: Int32?
    private var holders = 0
    private var waits = SleepInhibitor.reconnections[...]

    /// How long logind is waited for.
    ///
    /// libsystemd bounds a call only once the bus has let us in, and waits 90 s for that.
    private static let patience = TimeSpan.seconds(2)

    /// Who waits for logind's answer, by a number of its own.
    private var waiting: [Int: (deadline: BootTime, ready: () -> Void)] = [:]
    private var holds = 0

    /// When the bus is to be looked for again; nil for not by itself.
    private var nextLook: BootTime?

    /// When there is something to be done unasked; nil for never.
    var wakeUp: BootTime? {
        ([nextLook].compactMap(\.self) + waiting.values.map(\.deadline)).min()
    }

    init(on loop: EventLoop) {
        self.loop = loop
        connect()
    }

    /// Looks for the bus, and goes on without an answer, if it is time.
    func wake(at now: BootTime) {
        for (hold, (deadline, _)) in waiting where deadline <= now { end(hold) }
        guard let due = nextLook, due <= now else { return }
        nextLook = nil
        if bus == nil { connect() }
        if bus == nil { lookAgain(at: now) }
    }

    /// Calls `ready` once the machine is held awake, or once it is clear that it cannot be:
    /// ``isPreparing`` says whether that is because it is about to sleep.
    ///
    /// Each call is followed by one ``release()``.
    func hold(_ ready: @escaping () -> Void) {
        holders += 1
        if bus == nil { connect() }
        guard let bus, descriptor == nil else { return ready() }
        let hold = holds
        holds += 1
        waiting[hold] = (.now + SleepInhibitor.patience, ready)
        onWakeUpChange()
        bus.request(
            SleepInhibitor.service, SleepInhibitor.path, SleepInhibitor.interface, "Inhibit",
            ["sleep:shutdown", "canopyd", "A session token is being renewed", "delay"]
        ) { [weak self] answer in
            self?.answered(answer)
            self?.end(hold)
        }
    }

    /// Lets everybody go on who waits for logind's answer.
    func stopWaiting() {
        for hold in waiting.keys { end(hold) }
    }

    private func end(_ hold: Int) {
        waiting.removeValue(forKey: hold)?.ready()
    }

    func release() {
        holders -= 1
        guard holders == 0, let held = descriptor else { return }
        descriptor = nil
        close(held)
    }

    /// Any refusal but one means: go on without.
    private func answered(_ answer: BusMessage?) {
        if answer?.errorName == SleepInhibitor.inProgress {
            prepares(true)
        } else if let passed = answer?.readDescriptor() {
            let copy = clinux_duplicate_above(passed, 16)
            if holders > 0, descriptor == nil, copy >= 0 {
                descriptor = copy
            } else {
                close(copy)
            }
        }
    }

    // MARK: The bus

    private func connect() {
        lost = nil
        guard let bus = Bus(.system, on: loop) else { return }
        self.bus = bus
        bus.onDisconnect { [weak self] in self?.disconnected() }
        for member in ["PrepareForSleep", "PrepareForShutdown"] {
            bus.subscribe(
                "type='signal',sender='\(SleepInhibitor.service)',"
                    + "interface='\(SleepInhibitor.interface)',member='\(member)'"
            ) { [weak self] message in
                if let begins = message.readBoolean() { self?.prepares(begins) }
            }
        }
        bus.subscribe(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                + "member='NameOwnerChanged',arg0='\(SleepInhibitor.service)'"
        ) { [weak self] _ in
            self?.ownerChanged()
        }
        ask()
    }

    /// Asks what is under way.
    private func ask() {
        for property in ["PreparingForSleep", "PreparingForShutdown"] {
            bus?.call(
                SleepInhibitor.service, SleepInhibitor.path, "org.freedesktop.DBus.Properties",
                "Get", [SleepInhibitor.interface, property]
            ) { [weak self] answer in
                guard let self, let isUnderWay = answer?.readBooleanVariant() else { return }
                waits = SleepInhibitor.reconnections[...]
                if isUnderWay { prepares(true) }
            }
        }
    }

    /// logind came or went: what it was about has ended untold, or will be told.
    private func ownerChanged() {
        if isPreparing { prepares(false) }
        ask()
    }

    private func disconnected() {
        lost = bus
        bus = nil
        lookAgain(at: .now)
        if isPreparing { prepares(false) }
    }

    private func lookAgain(at now: BootTime) {
        nextLook = waits.popFirst().map { now + $0 }
        onWakeUpChange()
    }

    private func prepares(_ begins: Bool) {
        isPreparing = begins
        if !begins { onResume() }
    }

    deinit {
        if let descriptor { close(descriptor) }
    }
}
