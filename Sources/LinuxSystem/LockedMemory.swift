package import AgentCore
internal import CLinux
internal import Synchronization

extension SecretMemory {
    /// Locked memory, wiped at the end, left out of core dumps and forked children.
    ///
    /// Where `RLIMIT_MEMLOCK` does not suffice the memory works unlocked, and
    /// ``LockedMemory/lockingFailed`` says so, for one warning.
    package static let locked = SecretMemory(
        allocate: { size in
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
    private static let failed = Atomic(false)
    fileprivate static let places = Mutex(SecretPlaces())

    /// Whether the kernel has refused to lock memory since the process started.
    package static var lockingFailed: Bool { failed.load(ordering: .relaxed) }

    /// The address of `length` bytes of pages of their own.
    fileprivate static func map(_ length: Int) -> UInt {
        var locked: Int32 = 0
        guard let pages = clinux_map_secret(length, &locked) else {
            // No address space or no memory: nothing that this process could still do well.
            preconditionFailure("no memory for \(length) bytes")
        }
        if locked == 0 { failed.store(true, ordering: .relaxed) }
        return UInt(bitPattern: pages)
    }

    fileprivate static func bytes(_ address: UInt, _ count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(bitPattern: address), count: count)
    }
}
