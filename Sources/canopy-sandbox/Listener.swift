internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A listening TCP socket on 127.0.0.1, and nowhere else.
struct Listener: ~Copyable {
    let descriptor: FileDescriptor
    let port: UInt16

    /// Listens on `port`; on 0, on one that the kernel chooses.
    init(port: UInt16) throws(SystemError) {
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
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let length = size
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, length) }
        }
        guard bound == 0 else { throw .last("bind", "127.0.0.1:\(port)") }
        guard listen(number, 128) == 0 else { throw .last("listen", "127.0.0.1:\(port)") }
        let named = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(number, $0, &size)
            }
        }
        guard named == 0 else { throw .last("getsockname") }
        self.port = UInt16(bigEndian: address.sin_port)
        self.descriptor = descriptor
    }
}
