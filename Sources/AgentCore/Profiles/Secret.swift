/// Bytes that must never reach a log line, an error text or a debugger's printout.
///
/// A secret has no text form. Its bytes live in the memory that a ``SecretMemory`` hands out (at
/// the edges: locked, left out of core dumps), are reachable inside ``withBytes(_:)`` alone, and
/// are wiped when the last reference goes. The callers of `withBytes` are the complete list of
/// places where a secret can leave.
package final class Secret: @unchecked Sendable {
    // Unchecked: the bytes are written in `init` alone and read-only from then on.
    private let storage: UnsafeMutableRawBufferPointer
    private let memory: SecretMemory

    /// The number of bytes.
    package let count: Int

    /// Makes a secret of at most `capacity` bytes, written in place by `fill`.
    ///
    /// `fill` returns how many of the bytes it used.
    package init(
        capacity: Int, in memory: SecretMemory, fill: (UnsafeMutableRawBufferPointer) -> Int
    ) {
        storage = memory.allocate(max(capacity, 1))
        self.memory = memory
        let used = fill(UnsafeMutableRawBufferPointer(rebasing: storage[0..<capacity]))
        precondition(used >= 0 && used <= capacity, "a secret was filled beyond its capacity")
        count = used
    }

    /// Copies `bytes`; wiping the original is the caller's business.
    package convenience init(copying bytes: UnsafeRawBufferPointer, in memory: SecretMemory) {
        self.init(capacity: bytes.count, in: memory) { target in
            target.copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Lends the bytes for the length of the call.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(storage)[0..<count]))
    }

    deinit {
        memory.release(storage)
    }
}

extension Secret: Equatable {
    /// Compares in a time that depends on the lengths alone.
    package static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withBytes { leftBytes in
            right.withBytes { rightBytes in
                var difference: UInt8 = 0
                for index in 0..<leftBytes.count {
                    difference |= leftBytes[index] ^ rightBytes[index]
                }
                return difference == 0
            }
        }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "[secret]" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where the bytes of secrets live.
///
/// The core does no system calls, so locking memory is the edges' part: they pass their own. What
/// is released has to be wiped first, by whoever made the memory.
package struct SecretMemory: Sendable {
    /// Returns at least the asked number of bytes (1 or more).
    package let allocate: @Sendable (Int) -> UnsafeMutableRawBufferPointer

    /// Wipes and gives back what `allocate` returned.
    package let release: @Sendable (UnsafeMutableRawBufferPointer) -> Void

    package init(
        allocate: @escaping @Sendable (Int) -> UnsafeMutableRawBufferPointer,
        release: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void
    ) {
        self.allocate = allocate
        self.release = release
    }

    /// Ordinary memory, wiped at the end: for tests, the simulator and the sandbox.
    package static let ordinary = SecretMemory(
        allocate: { .allocate(byteCount: $0, alignment: 16) },
        release: { bytes in
            wipe(bytes)
            bytes.deallocate()
        })
}

/// Overwrites `bytes` with zeroes that the optimiser may not drop: it cannot see from the caller that
/// nobody reads them afterwards.
@inline(never)
package func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
}
