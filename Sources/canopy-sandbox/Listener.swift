internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A listening TCP socket on 127.0.0.1, and nowhere else.
struct Listener: ~Copyable {
    let descriptor: FileDescriptor
    let port: UInt16
    private var isListening = true

    /// Listens on `port`; on 0, on one that the kernel chooses.
    init(port: UInt16) throws(SystemError) {
        // The kernel keeps a port while nobody listens on it only if it was asked for by its number.
        let chosen = try Listener.bind(port)
        let number = try Listener.port(of: chosen)
        let descriptor = try Listener.bind(number)
        try Listener.listen(descriptor, number)
        self.port = number
        self.descriptor = descriptor
    }

    /// Takes connections, from now on or again.
    mutating func listen() throws(SystemError) {
        isListening = true
        try Listener.listen(descriptor, port)
    }

    /// Refuses connections and keeps the port.
    mutating func refuse() {
        // On Linux this takes a listening socket back to a bound one. Once: it would shut down every
        // later connection of a bound one.
        guard isListening else { return }
        isListening = false
        shutdown(descriptor.number, Int32(SHUT_RD))
    }

    private static func listen(
        _ descriptor: borrowing FileDescriptor, _ port: UInt16
    ) throws(SystemError) {
        guard Glibc.listen(descriptor.number, 128) == 0 else {
            throw .last("listen", "127.0.0.1:\(port)")
        }
    }

    private static func bind(_ port: UInt16) throws(SystemError) -> FileDescriptor {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw .last("socket") }
        let descriptor = FileDescriptor(owning: number)
        let flags = clinux_fcntl_get_flags(number)
        guard flags >= 0, clinux_fcntl_set_flags(number, flags | O_NONBLOCK) == 0 else {
            throw .last("fcntl")
        }
        // A sandbox that was stopped a moment ago must not keep its port from the next one.
        var on: Int32 = 1
        guard
            setsockopt(
                number, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size)) == 0
        else { throw .last("setsockopt") }

        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(number, $0, length)
            }
        }
        guard bound == 0 else { throw .last("bind", "127.0.0.1:\(port)") }
        return descriptor
    }

    private static func port(
        of descriptor: borrowing FileDescriptor
    ) throws(SystemError) -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let named = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor.number, $0, &size)
            }
        }
        guard named == 0 else { throw .last("getsockname") }
        return UInt16(bigEndian: address.sin_port)
    }
}
