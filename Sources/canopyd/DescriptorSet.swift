internal import CSystemd
internal import LinuxSystem

/// Descriptors that are watched together.
///
/// sd-event would ask the kernel anew after each descriptor that it serves, and the kernel answers
/// with every descriptor that is ready: with thousands ready at once that is quadratic, and an
/// attacker's to bring about. This set is served in batches, in turn.
final class DescriptorSet {
    private let epoll: FileDescriptor
    /// By place; nil where none is.
    ///
    /// An event names place and use, so that news of a descriptor that is gone is not taken for
    /// news of the one that has its place now.
    private var watches: [Unmanaged<WatchedDescriptor>?] = []
    private var uses: [UInt32] = []
    private var free: [Int] = []

    /// The most descriptors that one call of ``serve(waits:)`` serves.
    private let batch: Int

    init(batch: Int) throws(SystemError) {
        self.batch = batch
        let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw .last("epoll_create1") }
        epoll = FileDescriptor(owning: descriptor)
    }

    /// Says when one of the set is ready, and so may stand in another set.
    var descriptor: Int32 { epoll.number }

    /// Calls `handler` when `descriptor` is ready, until the watch goes.
    func watch(
        _ descriptor: Int32, _ readiness: Readiness, _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) -> DescriptorWatch {
        DescriptorWatch(try WatchedDescriptor(self, descriptor, readiness, handler))
    }

    /// Serves what is ready, and waits until something is if `waits` says so.
    func serve(waits: Bool) {
        withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: batch) {
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

    fileprivate func add(
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

    fileprivate func change(
        _ place: Int, _ descriptor: Int32, to readiness: Readiness
    ) throws(SystemError) {
        try control(EPOLL_CTL_MOD, descriptor, place, readiness)
    }

    fileprivate func remove(_ place: Int, _ descriptor: Int32) {
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
