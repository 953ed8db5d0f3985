import CLinux
import Foundation
import Glibc
import Testing

/// An HTTP proxy on loopback that lets nobody through.
final class StubbornProxy {
    let port: UInt16
    private let listener: Int32
    /// The requests that came, as the thread that hears them writes them down.
    private let record = Guarded<[String]>([])

    /// What it does after a request for a connection.
    enum Manner: String, CaseIterable {
        case forbids = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        case wantsPassword =
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"
        case fails = "HTTP/1.1 502 Bad Gateway\r\nRetry-After: 900\r\n\r\n<h1>no route</h1>"
        case hangsUp = ""
        case talksNonsense = "220 smtp.example.org ESMTP\r\n"
        /// The connection is there, and whoever is behind it does not speak TLS.
        case connectsToNobody = "HTTP/1.1 200 Connection established\r\n\r\n"
    }

    init(_ manner: Manner) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(listener >= 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(bound)
        port = UInt16(bigEndian: address.sin_port)
        let record = record
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                let request = StubbornProxy.read(connection)
                record.withLock { $0.append(request) }
                let answer = Array(manner.rawValue.utf8)
                _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
                close(connection)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// The requests that came, without their ends.
    var requests: [String] { record.withLock { $0 } }

    private static func read(_ connection: Int32) -> String {
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while received.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            received += buffer[..<count]
        }
        return String(decoding: received, as: UTF8.self)
    }
}
