import CLinux
import Foundation
import Glibc
import Testing

/// A port on loopback behind which a test puts now one server, now another: each connection is led to the
/// port that is chosen when it comes, byte for byte.
final class Switchboard {
    let port: UInt16
    private let listener: Int32
    private let plan = Plan()

    /// Where connections are led, as the thread that accepts them reads it.
    private final class Plan: Sendable {
        let ports = Guarded<(usual: UInt16, next: [UInt16], count: Int)>((0, [], 0))

        func take() -> UInt16 {
            ports.withLock { plan in
                plan.count += 1
                return plan.next.isEmpty ? plan.usual : plan.next.removeFirst()
            }
        }
    }

    init(to usual: UInt16) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(listener >= 0)
        port = try LoopbackPort.bind(listener)
        try #require(listen(listener, 64) == 0)
        plan.ports.withLock { $0.usual = usual }
        let (descriptor, plan) = (listener, plan)
        Thread.detachNewThread {
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { return }
                let server = plan.take()
                Thread.detachNewThread { Switchboard.join(client, server) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// The next connections go to these ports, in turn, and those after them where they usually go.
    func lead(to ports: [UInt16]) { plan.ports.withLock { $0.next += ports } }

    /// How many of the ports that were named still wait for a connection.
    var waiting: Int { plan.ports.withLock { $0.next.count } }

    /// How many connections have come.
    var connections: Int { plan.ports.withLock { $0.count } }

    /// Both ways until either side ends.
    private static func join(_ client: Int32, _ port: UInt16) {
        defer { close(client) }
        let server = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard server >= 0 else { return }
        defer { close(server) }
        guard LoopbackPort.connect(server, to: port) else { return }
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            var ready = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&ready, 2, 60_000) > 0 else { return }
            for (from, to) in [(0, server), (1, client)] where ready[from].revents != 0 {
                let count = recv(ready[from].fd, &buffer, buffer.count, 0)
                guard count > 0, send(to, buffer, count, Int32(MSG_NOSIGNAL)) == count else {
                    return
                }
            }
        }
    }
}

/// Ports of 127.0.0.1.
enum LoopbackPort {
    /// One that nobody has at the moment.
    static func free() throws -> UInt16 {
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        return try bind(descriptor)
    }

    /// Binds the socket to a port of the kernel's choice.
    static func bind(_ descriptor: Int32) throws -> UInt16 {
        var address = address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, length) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        return UInt16(bigEndian: address.sin_port)
    }

    static func connect(_ descriptor: Int32, to port: UInt16) -> Bool {
        var address = address(port)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
