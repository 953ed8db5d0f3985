package import AgentCore
internal import CLinux
internal import Synchronization

extension SecretMemory {
    /// Pages of their own: locked, wiped at the end, left out of core dumps and forked children.
    ///
    /// Where `RLIMIT_MEMLOCK` does not suffice the memory works unlocked, and
    /// ``LockedMemory/lockingFailed`` says so, for one warning.
    package static let locked = SecretMemory(
        allocate: { size in
            let page = 4096
            let length = (size + page - 1) / page * page
            var locked: Int32 = 0
            guard let pages = clinux_map_secret(length, &locked) else {
                // No address space or no memory: nothing that this process could still do well.
                preconditionFailure("no memory for \(length) bytes")
            }
            if locked == 0 { LockedMemory.failed.store(true, ordering: .relaxed) }
            return UnsafeMutableRawBufferPointer(start: pages, count: length)
        },
        release: { bytes in
            guard let start = bytes.baseAddress else { return }
            clinux_unmap_secret(start, bytes.count)
        })
}

/// What is known of locking memory in this process.
package enum LockedMemory {
    fileprivate static let failed = Atomic(false)

    /// Whether the kernel has refused to lock memory since the process started.
    package static var lockingFailed: Bool { failed.load(ordering: .relaxed) }
}
