internal import AgentCore
internal import CLinux
internal import CSystemd
internal import LinuxSystem

/// The one loop of the daemon: a set of descriptors, with sd-event as one of them.
///
/// Clients' descriptors stand in the set itself, so that a request costs one call of `epoll_wait`;
/// timers, signals, children and the buses are sd-event's, whose own descriptor says when one of
/// them is due (sd_event_get_fd(3)).
///
/// What is watched is an object whose end is the end of the watching: the loop knows the object's
/// address, so the source is taken away before the object goes.
final class EventLoop {
    private let event: OpaquePointer
    private let descriptors: DescriptorSet
    private let timer: BootTimer
    private var others: DescriptorWatch?
    private var isOver = false

    /// Whether sd-event's descriptor will tell of everything that sd-event has to do.
    private var isPrepared = false

    /// Throws if the kernel gives no epoll or timer descriptors.
    init() throws(SystemError) {
        var made: OpaquePointer?
        try check("sd_event_new", sd_event_new(&made))
        guard let made else { preconditionFailure("sd_event_new gave nothing and no error") }
        event = made
        descriptors = try DescriptorSet()
        timer = try BootTimer(event)
        others = try watch(sd_event_get_fd(event), .readable) { [unowned self] _ in
            changed()
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
        DescriptorWatch(
            try WatchedDescriptor(descriptors, descriptor, readiness, handler))
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
        // Before its descriptor goes.
        others = nil
        // The timer's source keeps sd-event alive until it has gone itself.
        sd_event_unref(event)
    }
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

/// All watched descriptors.
///
/// sd-event would ask the kernel anew after each descriptor that it serves, and the kernel answers
/// with every descriptor that is ready: with thousands ready at once that is quadratic, and an
/// attacker's to bring about. This set is served in batches, in turn.
private final class DescriptorSet {
    private let epoll: FileDescriptor
    /// By place; nil where none is.
    ///
    /// An event names place and use, so that news of a descriptor that is gone is not taken for
    /// news of the one that has its place now.
    private var watches: [Unmanaged<WatchedDescriptor>?] = []
    private var uses: [UInt32] = []
    private var free: [Int] = []

    /// Descriptors that are served before the loop takes its turn.
    private static let batch = 64

    init() throws(SystemError) {
        let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw .last("epoll_create1") }
        epoll = FileDescriptor(owning: descriptor)
    }

    /// Serves what is ready, and waits until something is if `waits` says so.
    func serve(waits: Bool) {
        withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: DescriptorSet.batch) {
            events in
            // Never nil, since it is not empty; glibc's header asks for that from 2.41 on.
            guard let first = events.baseAddress else { return }
            let count = epoll_wait(epoll.number, first, Int32(events.count), waits ? -1 : 0)
            for index in 0..<max(0, Int(count)) {
                let tag = events[index].data.u64
                let place = Int(tag & 0xFFFF_FFFF)
                // A handler of this very batch may have ended the watch.
                guard uses[place] == UInt32(tag >> 32), let watch = watches[place] else { continue }
                watch.takeUnretainedValue().handler(Readiness(rawValue: events[index].events))
            }
        }
    }

    func add(
        _ watch: WatchedDescriptor, _ descriptor: Int32, _ readiness: Readiness
    ) throws(SystemError) -> Int {
        let place = free.popLast() ?? watches.count
        if place == watches.count {
            watches.append(nil)
            uses.append(0)
        }
        uses[place] &+= 1
        do throws(SystemError) {
            try control(EPOLL_CTL_ADD, descriptor, place, readiness)
        } catch {
            free.append(place)
            throw error
        }
        watches[place] = Unmanaged.passUnretained(watch)
        return place
    }

    func change(_ place: Int, _ descriptor: Int32, to readiness: Readiness) throws(SystemError) {
        try control(EPOLL_CTL_MOD, descriptor, place, readiness)
    }

    func remove(_ place: Int, _ descriptor: Int32) {
        watches[place] = nil
        uses[place] &+= 1
        free.append(place)
        // It fails for a descriptor that was closed just before, and has left the set by itself.
        epoll_ctl(epoll.number, EPOLL_CTL_DEL, descriptor, nil)
    }

    private func control(
        _ operation: Int32, _ descriptor: Int32, _ place: Int, _ readiness: Readiness
    ) throws(SystemError) {
        var event = epoll_event()
        event.events = readiness.rawValue
        event.data.u64 = UInt64(uses[place]) << 32 | UInt64(place)
        guard epoll_ctl(epoll.number, operation, descriptor, &event) == 0 else {
            throw .last("epoll_ctl")
        }
    }
}

/// Watches one descriptor, which has to stay open meanwhile.
///
/// The watching ends the moment that the owner lets go of this, in the midst of a call of the handler
/// too: the descriptor's number may be another one's before the handler returns.
struct DescriptorWatch: ~Copyable {
    private let watched: WatchedDescriptor

    fileprivate init(_ watched: WatchedDescriptor) {
        self.watched = watched
    }

    /// Changes what is waited for; an empty set still reports that the peer is gone.
    func wait(for readiness: Readiness) {
        do throws(SystemError) {
            try watched.set.change(watched.place, watched.descriptor, to: readiness)
        } catch {
            // It fails for lack of kernel memory alone, and without it the connection would hang.
            preconditionFailure("epoll refused to change what is waited for: \(error)")
        }
    }

    deinit { watched.set.remove(watched.place, watched.descriptor) }
}

/// What the set knows of a watch: it outlives the watch for as long as its handler runs.
private final class WatchedDescriptor {
    let set: DescriptorSet
    let descriptor: Int32
    let handler: (Readiness) -> Void
    private(set) var place = -1

    init(
        _ set: DescriptorSet, _ descriptor: Int32, _ readiness: Readiness,
        _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) {
        self.set = set
        self.descriptor = descriptor
        self.handler = handler
        place = try set.add(self, descriptor, readiness)
    }
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
