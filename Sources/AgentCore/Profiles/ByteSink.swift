/// Something that bytes are appended to: plain bytes for what anybody may see, a secret buffer
/// for what nobody may.
package protocol ByteSink: ~Copyable {
    mutating func append(_ byte: UInt8)
    mutating func append(contentsOf bytes: UnsafeRawBufferPointer)
}

extension ByteSink where Self: ~Copyable {
    /// Appends the UTF-8 of `text`.
    package mutating func append(_ text: StaticString) {
        append(
            contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        )
    }

    /// Appends the UTF-8 of `text`.
    package mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(contentsOf: UnsafeRawBufferPointer($0)) }
    }

    /// Appends the bytes of `secret`.
    package mutating func append(_ secret: Secret) {
        secret.withBytes { append(contentsOf: $0) }
    }
}

extension [UInt8]: ByteSink {
    package mutating func append(contentsOf bytes: UnsafeRawBufferPointer) {
        append(contentsOf: bytes.bindMemory(to: UInt8.self))
    }
}

/// A growing buffer in secret memory; what it outgrows is wiped.
package struct SecretBuffer: ByteSink, ~Copyable {
    private let memory: SecretMemory
    private var storage: UnsafeMutableRawBufferPointer

    /// The number of bytes appended so far.
    package private(set) var count = 0

    package init(capacity: Int = 256, in memory: SecretMemory) {
        self.memory = memory
        storage = memory.allocate(max(capacity, 64))
    }

    package mutating func append(_ byte: UInt8) {
        reserve(1)
        storage[count] = byte
        count += 1
    }

    package mutating func append(contentsOf bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        UnsafeMutableRawBufferPointer(rebasing: storage[count..<count + bytes.count])
            .copyMemory(from: bytes)
        count += bytes.count
    }

    /// Lends what was appended for the length of the call.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
        -> Result
    {
        try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(storage)[0..<count]))
    }

    /// What was appended, as a secret of its own.
    package func secret() -> Secret {
        withBytes { Secret(copying: $0, in: memory) }
    }

    private mutating func reserve(_ more: Int) {
        guard count + more > storage.count else { return }
        let larger = memory.allocate(max(storage.count * 2, count + more))
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
        memory.release(storage)
        storage = larger
    }

    deinit {
        memory.release(storage)
    }
}
