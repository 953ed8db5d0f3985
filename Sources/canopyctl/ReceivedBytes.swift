internal import AgentCore
internal import LinuxSystem

/// What has arrived of an answer.
struct ReceivedBytes: ~Copyable {
    private var storage = SecretMemory.locked.allocate(ReceivedBytes.initialBytes)
    var count = 0

    /// A token of a usual size with its head, in one page.
    private static let initialBytes = 4096

    /// Where the next bytes go; see ``makeRoom()``.
    var free: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: storage[count...])
    }

    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(storage)[..<count])
    }

    func head() throws(ResponseHead.Malformed) -> ResponseHead? {
        try ResponseHead.parse(bytes)
    }

    /// Sees to it that ``free`` is not empty, for an answer whose length is not known yet.
    mutating func makeRoom() {
        if free.isEmpty { reserve(2 * storage.count) }
    }

    /// Makes room for `size` bytes in all; what was there is wiped.
    mutating func reserve(_ size: Int) {
        guard size > storage.count else { return }
        let larger = SecretMemory.locked.allocate(size)
        larger.copyMemory(from: bytes)
        SecretMemory.locked.release(storage)
        storage = larger
    }

    /// Forgets the first bytes.
    mutating func drop(_ length: Int) {
        let rest = count - length
        UnsafeMutableRawBufferPointer(rebasing: storage[..<rest])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[length...]))
        count = rest
    }

    deinit {
        SecretMemory.locked.release(storage)
    }
}
