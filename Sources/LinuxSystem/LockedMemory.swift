package import AgentCore
internal import CLinux
internal import Glibc
internal import Synchronization

extension SecretMemory {
    /// Locked memory, wiped at the end, left out of core dumps and forked children.
    ///
    /// Where `RLIMIT_MEMLOCK` does not suffice the memory works unlocked, and
    /// ``LockedMemory/refusal`` says so, for one warning.
    package static let locked = SecretMemory(
        allocate: { size in
            defer { LockedMemory.tell() }
            if size > SecretPlaces.largest {
                let length = (size + SecretPlaces.page - 1) / SecretPlaces.page * SecretPlaces.page
                return LockedMemory.bytes(LockedMemory.map(length), length)
            }
            let address = LockedMemory.places.withLock { places in
                places.take(size) { LockedMemory.map(SecretPlaces.page) }
            }
            return LockedMemory.bytes(address, SecretPlaces.place(for: size))
        },
        release: { bytes in
            guard let start = bytes.baseAddress else { return }
            if bytes.count > SecretPlaces.largest { return clinux_unmap_secret(start, bytes.count) }
            explicit_bzero(start, bytes.count)
            let address = UInt(bitPattern: start)
            let emptied = LockedMemory.places.withLock { $0.give(address) }
            if let emptied {
                clinux_unmap_secret(
                    UnsafeMutableRawPointer(bitPattern: emptied), SecretPlaces.page)
            }
        })
}

/// What is known of locking memory in this process.
package enum LockedMemory {
    fileprivate static let places = Mutex(SecretPlaces())
    private static let first = Mutex<Refusal?>(nil)
    private static let listener = Mutex<(@Sendable (Refusal) -> Void)?>(nil)
    private static let isUntold = Atomic(false)

    /// Why memory is not locked.
    package struct Refusal: Sendable, CustomStringConvertible {
        package let error: SystemError

        /// Bytes that the process may lock; nil for as many as it likes.
        package let limit: UInt64?

        package var description: String {
            "\(error), and RLIMIT_MEMLOCK is " + (limit.map { "\($0) bytes" } ?? "unlimited")
        }
    }

    /// The kernel's first refusal to lock memory since the process started; nil for none.
    package static var refusal: Refusal? { first.withLock(\.self) }

    /// Has `tell` called once, after the kernel's first refusal to lock memory.
    ///
    /// It is called where secrets are made, and has to be content with the memory that there is.
    package static func onRefusal(_ tell: @escaping @Sendable (Refusal) -> Void) {
        listener.withLock { $0 = tell }
    }

    /// Not in the middle of an allocation, whose lock whoever is told may need.
    fileprivate static func tell() {
        guard isUntold.exchange(false, ordering: .relaxed), let refusal,
            let tell = listener.withLock(\.self)
        else { return }
        tell(refusal)
    }

    private static func note(_ error: SystemError) {
        let isFirst = first.withLock { first in
            guard first == nil else { return false }
            first = Refusal(error: error, limit: memoryLimit)
            return true
        }
        if isFirst { isUntold.store(true, ordering: .relaxed) }
    }

    private static var memoryLimit: UInt64? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit) == 0,
            limit.rlim_cur != rlim_t.max
        else { return nil }
        return UInt64(limit.rlim_cur)
    }

    /// The address of `length` bytes of pages of their own.
    fileprivate static func map(_ length: Int) -> UInt {
        var locked: Int32 = 0
        guard let pages = clinux_map_secret(length, &locked) else {
            // No address space or no memory: nothing that this process could still do well.
            preconditionFailure("no memory for \(length) bytes")
        }
        if locked == 0 { note(.last("mlock")) }
        return UInt(bitPattern: pages)
    }

    fileprivate static func bytes(_ address: UInt, _ count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(bitPattern: address), count: count)
    }
}
