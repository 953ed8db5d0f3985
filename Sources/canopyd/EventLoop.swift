internal import AgentCore
internal import CLinux
internal import CSystemd
internal import LinuxSystem

/// The one loop of the daemon: a set of descriptors, with sd-event as one of them.
///
/// Clients' descriptors stand in the set itself, so that a request costs one call of `epoll_wait`;
/// those of clients that have not been served yet stand in a set of their own, which is one descriptor
/// more, so that a crowd that comes or goes at once is served beside the others and not before them;
/// timers, signals, children and the buses are sd-event's, whose own descriptor says when one of
/// them is due (sd_event_get_fd(3)).
///
/// What is watched is an object whose end is the end of the watching: the loop knows the object's
/// address, so the source is taken away before the object goes.
final class EventLoop {
    private let event: OpaquePointer
    private let descriptors: DescriptorSet
    private let newcomers: DescriptorSet
    private let timer: BootTimer
    private var others: DescriptorWatch?
    private var crowd: DescriptorWatch?
    private var isOver = false

    /// Whether sd-event's descriptor will tell of everything that sd-event has to do.
    private var isPrepared = false

    /// Throws if the kernel gives no epoll or timer descriptors.
    init() throws(SystemError) {
        var made: OpaquePointer?
        try check("sd_event_new", sd_event_new(&made))
        guard let made else { preconditionFailure("sd_event_new gave nothing and no error") }
        event = made
        descriptors = try DescriptorSet(batch: Limits.descriptorsPerTurn)
        newcomers = try DescriptorSet(batch: Limits.newcomersPerTurn)
        timer = try BootTimer(event)
        others = try watch(sd_event_get_fd(event), .readable) { [unowned self] _ in
            changed()
        }
        crowd = try watch(newcomers.descriptor, .readable) { [unowned self] _ in
            newcomers.serve(waits: false)
        }
    }

    /// Answers the service manager's watchdog, if it set one.
    func answerWatchdog() throws(SystemError) {
        try check("sd_event_set_watchdog", sd_event_set_watchdog(event, 1))
    }

    /// Runs until ``stop()``.
    ///
    /// `turn` is called after each handler, and before the first, and told whether the time has
    /// come that it named last; so that a turn without anything due reads no clock. It returns
    /// when the timer is to go off (nil for never), and whether there is work left that waits for
    /// nothing.
    func run(
        _ turn: (_ isDue: Bool) -> (wakeUp: BootTime?, hasWork: Bool)
    ) throws(SystemError) {
        while !isOver {
            let next = turn(timer.hasGoneOff)
            if isOver { break }
            if try timer.set(next.wakeUp) { changed() }
            // Both in each round: neither clients nor a bus that never falls silent shut out the
            // others.
            let hasServed = isPrepared ? false : try serveOthers()
            descriptors.serve(waits: !next.hasWork && !hasServed)
        }
    }

    /// Says that sd-event has something to do, or to wait for, that it had not before.
    ///
    /// Whoever adds to it or sends on a bus of its says so: it looks at that only in ``run(_:)``.
    func changed() { isPrepared = false }

    /// Lets sd-event serve one of its sources, and returns true; or prepares it for waiting.
    private func serveOthers() throws(SystemError) -> Bool {
        if sd_event_get_state(event) == SD_EVENT_ARMED {
            if try check("sd_event_wait", sd_event_wait(event, 0)) > 0 {
                try check("sd_event_dispatch", sd_event_dispatch(event))
                return true
            }
        }
        if try check("sd_event_prepare", sd_event_prepare(event)) > 0 {
            try check("sd_event_dispatch", sd_event_dispatch(event))
            return true
        }
        isPrepared = true
        return false
    }

    func stop() { isOver = true }

    /// Calls `handler` when `descriptor` is ready, until the watch goes.
    func watch(
        _ descriptor: Int32, _ readiness: Readiness,
        _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) -> DescriptorWatch {
        try descriptors.watch(descriptor, readiness, handler)
    }

    /// The same for a client that nobody knows yet: however many of them are ready, whoever is
    /// watched by ``watch(_:_:_:)`` waits for few.
    func watch(
        newcomer descriptor: Int32, _ readiness: Readiness,
        _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) -> DescriptorWatch {
        try newcomers.watch(descriptor, readiness, handler)
    }

    /// Calls `handler` when the signal comes; it has to be blocked.
    func watch(signal: Int32, _ handler: @escaping () -> Void) throws(SystemError) -> SignalWatch {
        changed()
        return try SignalWatch(event, signal, handler)
    }

    /// Calls `handler` once when the child has ended, and reaps it; `SIGCHLD` has to be blocked.
    func watch(
        child: Int32, _ handler: @escaping (ChildEnd) -> Void
    ) throws(SystemError) -> ChildWatch {
        changed()
        return try ChildWatch(event, child, handler)
    }

    /// For libraries that bring their own sources to the loop (sd-bus); see ``changed()``.
    var raw: OpaquePointer { event }

    deinit {
        // Before their descriptors go.
        others = nil
        crowd = nil
        // The timer's source keeps sd-event alive until it has gone itself.
        sd_event_unref(event)
    }
}

/// How a child process ended.
enum ChildEnd: Equatable {
    case exited(status: Int32)
    case killed(signal: Int32)
}

/// Watches one signal.
final class SignalWatch {
    private var source: OpaquePointer?
    private let handler: () -> Void

    fileprivate init(
        _ event: OpaquePointer, _ signal: Int32, _ handler: @escaping () -> Void
    ) throws(SystemError) {
        self.handler = handler
        try check(
            "sd_event_add_signal",
            sd_event_add_signal(
                event, &source, signal,
                { _, _, object in
                    if let object {
                        Unmanaged<SignalWatch>.fromOpaque(object).takeUnretainedValue().handler()
                    }
                    return 0
                }, Unmanaged.passUnretained(self).toOpaque()))
    }

    deinit { sd_event_source_disable_unref(source) }
}

/// Watches one child process.
final class ChildWatch {
    private var source: OpaquePointer?
    private let handler: (ChildEnd) -> Void

    fileprivate init(
        _ event: OpaquePointer, _ child: Int32, _ handler: @escaping (ChildEnd) -> Void
    ) throws(SystemError) {
        self.handler = handler
        try check(
            "sd_event_add_child",
            sd_event_add_child(
                event, &source, child, WEXITED,
                { _, report, object in
                    if let object, let report {
                        let status = clinux_child_status(report)
                        Unmanaged<ChildWatch>.fromOpaque(object).takeUnretainedValue().handler(
                            clinux_child_exited(report) != 0
                                ? .exited(status: status) : .killed(signal: status))
                    }
                    return 0
                }, Unmanaged.passUnretained(self).toOpaque()))
    }

    deinit { sd_event_source_disable_unref(source) }
}

/// The one timer: it counts through suspend, and is off while nothing is to come.
private final class BootTimer {
    private var source: OpaquePointer?
    private var armed: BootTime?

    /// Whether the time has come since ``set(_:)`` was called last.
    private(set) var hasGoneOff = false

    init(_ event: OpaquePointer) throws(SystemError) {
        try check(
            "sd_event_add_time",
            sd_event_add_time(
                event, &source, CLOCK_BOOTTIME, 0, BootTimer.accuracy,
                { _, _, object in
                    if let object {
                        let timer = Unmanaged<BootTimer>.fromOpaque(object).takeUnretainedValue()
                        // It is a one-shot: what is due is found out by the loop's turn.
                        timer.armed = nil
                        timer.hasGoneOff = true
                    }
                    return 0
                }, Unmanaged.passUnretained(self).toOpaque()))
        try check(
            "sd_event_source_set_enabled", sd_event_source_set_enabled(source, Int32(SD_EVENT_OFF)))
    }

    /// Microseconds that the kernel may be late; sd-event's own default is 250,000.
    private static let accuracy: UInt64 = 1000

    /// Returns whether the time is another one than before.
    func set(_ time: BootTime?) throws(SystemError) -> Bool {
        hasGoneOff = false
        guard time != armed else { return false }
        armed = time
        guard let time else {
            try check(
                "sd_event_source_set_enabled",
                sd_event_source_set_enabled(source, Int32(SD_EVENT_OFF)))
            return true
        }
        // Rounded up: waking up early would find nothing due.
        let microseconds = UInt64(max(0, time.nanoseconds) / 1000) + 1
        try check("sd_event_source_set_time", sd_event_source_set_time(source, microseconds))
        try check(
            "sd_event_source_set_enabled",
            sd_event_source_set_enabled(source, Int32(SD_EVENT_ONESHOT)))
        return true
    }

    deinit { sd_event_source_disable_unref(source) }
}

/// The earlier of two times of which there may be none.
func earlier(_ one: BootTime?, _ other: BootTime?) -> BootTime? {
    guard let one else { return other }
    return other.map { min($0, one) } ?? one
}

/// libsystemd's calls return a negative `errno`.
@discardableResult
private func check(
    _ call: SystemError.StaticCall, _ result: Int32
) throws(SystemError) -> Int32 {
    guard result >= 0 else { throw SystemError(call, code: -result) }
    return result
}
