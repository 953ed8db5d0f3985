package import AgentCore
internal import CLinux
internal import Glibc

/// The successor slot: a file without a name that outlives the processes which use it, as long as
/// one of them, or the service manager, holds its descriptor.
package struct MemoryFile: ~Copyable, Sendable {
    private let file: FileDescriptor

    /// Takes over a descriptor.
    package init(owning descriptor: Int32) {
        file = FileDescriptor(owning: descriptor)
    }

    /// Makes an empty one.
    package static func make(named name: String) throws(SystemError) -> MemoryFile {
        let descriptor = clinux_memfd_create(name)
        guard descriptor >= 0 else { throw .last("memfd_create", name) }
        return MemoryFile(owning: descriptor)
    }

    package var descriptor: Int32 { file.number }

    /// Whether there is anything in it.
    package var isFull: Bool {
        var status = stat()
        return fstat(file.number, &status) == 0 && status.st_size > 0
    }

    /// The session in it.
    package func read(in memory: SecretMemory) throws(SystemError) -> SlotContents {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw .last("fstat", "slot") }
        let size = min(Int(status.st_size), Limits.messageBytes)
        var failure: SystemError?
        let contents = Secret(capacity: size, in: memory) { target in
            var count = 0
            while count < size {
                let got = pread(
                    file.number, target.baseAddress.map { $0 + count }, size - count, off_t(count))
                if got == 0 { break }
                guard got > 0 else {
                    if errno == EINTR { continue }
                    failure = .last("pread", "slot")
                    break
                }
                count += got
            }
            return count
        }
        if let failure { throw failure }
        return contents.withBytes { SlotFormat.read($0, in: memory) }
    }

    /// Writes the session, and what makes it valid last.
    package func fill(_ session: StoredSession, in memory: SecretMemory) throws(SystemError) {
        let body = session.encoded(in: memory)
        guard ftruncate(file.number, 0) == 0 else { throw .last("ftruncate", "slot") }
        try body.withBytes { (body) throws(SystemError) in
            try write(body, at: SlotFormat.headerBytes)
            let header = SlotFormat.header(for: body)
            let written = header.withUnsafeBytes { header in
                Result { () throws(SystemError) in try write(header, at: 0) }
            }
            try written.get()
        }
    }

    package func empty() throws(SystemError) {
        guard ftruncate(file.number, 0) == 0 else { throw .last("ftruncate", "slot") }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(
                file.number, bytes.baseAddress.map { $0 + done }, bytes.count - done,
                off_t(offset + done))
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw .last("pwrite", "slot")
            }
            done += count
        }
    }
}
