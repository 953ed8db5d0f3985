internal import AgentCore

/// Bytes that a client sent and that are not used yet: a part of a head, or requests to come.
///
/// Given back while there are none, so that an idle connection costs no buffer.
struct PendingInput: ~Copyable {
    private var bytes: UnsafeMutableRawBufferPointer?

    /// How many of the bytes have been searched for the head's end in vain.
    private var searched = 0

    var count: Int { bytes?.count ?? 0 }

    /// Takes a copy of `bytes`, of which so many are `searched`; there must be none yet.
    mutating func keep(_ bytes: UnsafeRawBufferPointer, searched: Int = 0) {
        precondition(self.bytes == nil, "input that is pending was not looked at")
        guard !bytes.isEmpty else { return }
        let kept = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        kept.copyMemory(from: bytes)
        self.bytes = kept
        self.searched = searched
    }

    /// Moves the bytes to the start of `buffer`; returns how many of them have been searched.
    mutating func restore(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let bytes else { return 0 }
        buffer.copyMemory(from: UnsafeRawBufferPointer(bytes))
        drop()
        return searched
    }

    /// Returns how many there were.
    @discardableResult
    mutating func drop() -> Int {
        guard let bytes else { return 0 }
        // A sign-in that was sent behind another request stands here in the clear.
        wipe(bytes)
        bytes.deallocate()
        self.bytes = nil
        return bytes.count
    }

    deinit {
        guard let bytes else { return }
        wipe(bytes)
        bytes.deallocate()
    }
}
