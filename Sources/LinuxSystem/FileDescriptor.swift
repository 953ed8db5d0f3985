package import AgentCore
internal import CLinux
internal import Glibc

/// An open descriptor; closed when it goes.
package struct FileDescriptor: ~Copyable, Sendable {
    package let number: Int32

    /// Takes over an open descriptor.
    package init(owning number: Int32) {
        self.number = number
    }

    /// Opens a file, close-on-exec always.
    package static func open(
        _ path: String, _ flags: Int32, mode: UInt32 = 0
    ) throws(SystemError) -> FileDescriptor {
        while true {
            let number = clinux_open(path, flags, mode)
            if number >= 0 { return FileDescriptor(owning: number) }
            guard errno == EINTR else { throw .last("open", path) }
        }
    }

    /// Reads from the present position to the end, at most `limit` bytes.
    package func readAll(limit: Int, subject: String) throws(SystemError) -> [UInt8] {
        let bytes = try readStart(of: limit + 1, subject: subject)
        guard bytes.count <= limit else {
            throw SystemError("read", code: EFBIG, subject: subject)
        }
        return bytes
    }

    /// Reads from the present position to the end, or the first `count` bytes.
    package func readStart(of count: Int, subject: String) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: Limits.readBytes)
        while bytes.count < count {
            let got = read(number, &chunk, min(chunk.count, count - bytes.count))
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw .last("read", subject) }
            guard got > 0 else { break }
            bytes += chunk[..<got]
        }
        return bytes
    }

    /// Writes all of `bytes`.
    package func writeAll(_ bytes: UnsafeRawBufferPointer, subject: String) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = write(number, part.baseAddress, part.count)
            if count < 0 {
                guard errno == EINTR else { throw .last("write", subject) }
                continue
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Writes all of `bytes`.
    package func writeAll(_ bytes: [UInt8], subject: String) throws(SystemError) {
        let written = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try writeAll(bytes, subject: subject) }
        }
        try written.get()
    }

    /// Waits until what was written is on the medium.
    package func sync(subject: String) throws(SystemError) {
        guard fsync(number) == 0 else { throw .last("fsync", subject) }
    }

    /// Which file it is: inode and birth time.
    package func identity(subject: String) throws(SystemError) -> Anchor {
        var birth = clinux_birth()
        guard clinux_birth_of(number, &birth) == 0 else { throw .last("statx", subject) }
        let nanoseconds = birth.seconds &* 1_000_000_000 &+ Int64(birth.nanoseconds)
        return Anchor(inode: birth.inode, birth: birth.known == 0 ? 0 : nanoseconds)
    }

    deinit {
        // A failing close of a descriptor that was synced, or only read, changes nothing.
        close(number)
    }
}
