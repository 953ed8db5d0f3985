internal import AgentCore
internal import CLinux
internal import Glibc

/// The address of a Unix socket in the file system, known to fit into the kernel's field for it.
package struct SocketAddress: Equatable, Sendable {
    package let path: String

    /// Checks `path`: 1 to ``Limits/socketPathBytes`` bytes without a NUL.
    package init(path: String) throws(Unusable) {
        let length = path.utf8.count
        guard length > 0 else { throw .empty }
        guard length <= Limits.socketPathBytes else { throw .tooLong(path: path, bytes: length) }
        // The kernel would take the part before it, and so another socket than the one meant.
        guard !path.utf8.contains(0) else { throw .containsNUL }
        self.path = path
    }

    /// The address that the socket `descriptor` is bound to; nil if it has none in the file system.
    package init?(of descriptor: Int32) {
        var address = sockaddr_un()
        var size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &size)
            }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        // An abstract address starts with a NUL, and has no path.
        let path = withUnsafeBytes(of: &address.sun_path) { bytes in
            String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        guard let path, path.hasPrefix("/") else { return nil }
        self.path = path
    }

    /// The directory that the socket stands in; nil for a path that does not say.
    package var directory: String? {
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash > path.startIndex
        else { return nil }
        return String(path[..<slash])
    }

    /// Gives the socket `descriptor` this address (bind(2)).
    package func bind(_ descriptor: Int32) throws(SystemError) {
        let result = withKernelForm { Glibc.bind(descriptor, $0, $1) }
        guard result == 0 else { throw .last("bind", path) }
    }

    /// Connects the socket `descriptor` to whoever listens here (connect(2)).
    ///
    /// A non-blocking socket fails with `EAGAIN` while the listener's queue is full.
    package func connect(_ descriptor: Int32) throws(SystemError) {
        while true {
            let result = withKernelForm { Glibc.connect(descriptor, $0, $1) }
            if result == 0 { return }
            let failure = SystemError.last("connect", path)
            // A Unix socket's connect that a signal broke has done nothing, and may be repeated.
            guard failure.code == EINTR else { throw failure }
        }
    }

    private func withKernelForm(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { target in
            // One byte of the zeroed field stays as the final NUL: `init` saw to it.
            target.copyBytes(from: path.utf8)
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                body(general, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Why a path cannot be a socket's address.
    package enum Unusable: Error, Equatable, CustomStringConvertible {
        case empty
        case containsNUL
        case tooLong(path: String, bytes: Int)

        package var description: String {
            switch self {
            case .empty: return "the socket path is empty"
            case .containsNUL: return "the socket path contains a NUL byte"
            case .tooLong(let path, let bytes):
                return "the socket path has \(bytes) bytes, and a Unix socket's path holds at most "
                    + "\(Limits.socketPathBytes): \(path)"
            }
        }

        /// What the user can do about it.
        package var remedy: String {
            switch self {
            case .empty, .containsNUL:
                return "set CANOPYD_SOCKET to the socket's path, or unset it"
            case .tooLong:
                return "set CANOPYD_SOCKET to a path of at most \(Limits.socketPathBytes) bytes, "
                    + "the same for canopyd and canopyctl"
            }
        }
    }
}
