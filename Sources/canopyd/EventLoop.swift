internal import AgentCore
internal import CLinux
internal import CSystemd
internal import LinuxSystem

/// The one loop of the daemon: sd-event.
///
/// What is watched is an object whose end is the end of the watching: sd-event knows the object's
/// address, so the source is taken away before the object goes.
final class EventLoop {
    private let event: OpaquePointer
    private var isOver = false
    private let timer: BootTimer

    /// Throws if the kernel gives no epoll or timer descriptors.
    init() throws(SystemError) {
        var made: OpaquePointer?
        try check("sd_event_new", sd_event_new(&made))
        guard let made else { preconditionFailure("sd_event_new gave nothing and no error") }
        event = made
        timer = try BootTimer(event)
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
            try timer.set(next.wakeUp)
            try check("sd_event_run", sd_event_run(event, next.hasWork ? 0 : UInt64.max))
        }
    }

    func stop() { isOver = true }

    /// Calls `handler` when `descriptor` is ready, until the watch goes.
    func watch(
        _ descriptor: Int32, _ readiness: Readiness,
        _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) -> DescriptorWatch {
        try DescriptorWatch(event, descriptor, readiness, handler)
    }

    /// Calls `handler` when the signal comes; it has to be blocked.
    func watch(signal: Int32, _ handler: @escaping () -> Void) throws(SystemError) -> SignalWatch {
        try SignalWatch(event, signal, handler)
    }

    /// Calls `handler` once when the child has ended, and reaps it; `SIGCHLD` has to be blocked.
    func watch(
        child: Int32, _ handler: @escaping (ChildEnd) -> Void
    ) throws(SystemError) -> ChildWatch {
        try ChildWatch(event, child, handler)
    }

    /// For libraries that bring their own sources to the loop (sd-bus).
    var raw: OpaquePointer { event }

    // The timer's source keeps the loop alive until it has gone itself.
    deinit { sd_event_unref(event) }
}

/// What a descriptor is ready for.
struct Readiness: OptionSet {
    let rawValue: UInt32

    static let readable = Readiness(rawValue: UInt32(EPOLLIN.rawValue))
    static let writable = Readiness(rawValue: UInt32(EPOLLOUT.rawValue))
    /// Both directions are closed.
    ///
    /// Reported whether asked for or not.
    static let hungUp = Readiness(rawValue: UInt32(EPOLLHUP.rawValue))
    /// Reported whether asked for or not.
    static let failed = Readiness(rawValue: UInt32(EPOLLERR.rawValue))
}

/// How a child process ended.
enum ChildEnd: Equatable {
    case exited(status: Int32)
    case killed(signal: Int32)
}

/// Watches one descriptor, which has to stay open meanwhile.
final class DescriptorWatch {
    private var source: OpaquePointer?
    private let handler: (Readiness) -> Void

    fileprivate init(
        _ event: OpaquePointer, _ descriptor: Int32, _ readiness: Readiness,
        _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) {
        self.handler = handler
        try check(
            "sd_event_add_io",
            sd_event_add_io(
                event, &source, descriptor, readiness.rawValue,
                { _, _, events, object in
                    if let object {
                        Unmanaged<DescriptorWatch>.fromOpaque(object).takeUnretainedValue()
                            .handler(Readiness(rawValue: events))
                    }
                    return 0
                }, Unmanaged.passUnretained(self).toOpaque()))
    }

    /// Changes what is waited for; an empty set still reports that the peer is gone.
    func wait(for readiness: Readiness) {
        let result = sd_event_source_set_io_events(source, readiness.rawValue)
        // It fails for lack of kernel memory alone, and without it the connection would hang.
        precondition(result >= 0, "epoll refused to change what is waited for")
    }

    deinit { sd_event_source_disable_unref(source) }
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

    func set(_ time: BootTime?) throws(SystemError) {
        hasGoneOff = false
        guard time != armed else { return }
        armed = time
        guard let time else {
            return try check(
                "sd_event_source_set_enabled",
                sd_event_source_set_enabled(source, Int32(SD_EVENT_OFF)))
        }
        // Rounded up: waking up early would find nothing due.
        let microseconds = UInt64(max(0, time.nanoseconds) / 1000) + 1
        try check("sd_event_source_set_time", sd_event_source_set_time(source, microseconds))
        try check(
            "sd_event_source_set_enabled",
            sd_event_source_set_enabled(source, Int32(SD_EVENT_ONESHOT)))
    }

    deinit { sd_event_source_disable_unref(source) }
}

/// libsystemd's calls return a negative `errno`.
private func check(_ call: SystemError.StaticCall, _ result: Int32) throws(SystemError) {
    guard result >= 0 else { throw SystemError(call, code: -result) }
}
