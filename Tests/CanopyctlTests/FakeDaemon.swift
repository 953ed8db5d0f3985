import AgentCore
import CLinux
import Foundation
import Glibc
import LinuxSystem
import Synchronization

/// Plays canopyd on a Unix socket of its own: every connection gets one answer.
final class FakeDaemon: Sendable {
    struct Request: Sendable {
        let line: String
        let head: String
        let body: String
    }

    enum Answer: Sendable {
        case reply(Int, String, String)
        case raw(String)
        /// The bytes, and the connection stays open.
        case stream(String)
        /// Reads the request and closes.
        case hangUp
        /// Reads the request and never answers.
        case silence
        /// Closes without reading.
        case slam

        static func json(_ body: String, status: Int = 200) -> Answer {
            .reply(status, "application/json", body)
        }
        static func token(_ text: String) -> Answer {
            .reply(200, "text/plain; charset=utf-8", text + "\n")
        }
        static func problem(_ code: Problem.Code, _ more: String = "") -> Answer {
            .reply(
                code.status, "application/problem+json",
                #"{"type":"about:blank","title":"T","status":\#(code.status),"#
                    + #""detail":"because of this","code":"\#(code.rawValue)"\#(more)}"#)
        }
    }

    let directory: String
    var socketPath: String { directory + "/agent.sock" }
    private let listener: Int32
    private let seen = Mutex<[Request]>([])
    private let held = Mutex<[Int32]>([])

    var requests: [Request] { seen.withLock { $0 } }

    init(_ answer: @escaping @Sendable (Request) -> Answer) throws {
        directory = NSTemporaryDirectory() + "ctl-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        listener = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try SocketAddress(path: directory + "/agent.sock").bind(listener)
        listen(listener, 16)
        Thread.detachNewThread { [listener, weak self] in
            while true {
                // Close-on-exec from the start, or a program of another test keeps it open.
                let connection = clinux_accept(listener)
                guard connection >= 0, let self else {
                    // Here and not in `deinit`: the number must not be another daemon's while
                    // this thread may still accept on it.
                    if connection >= 0 { close(connection) }
                    close(listener)
                    return
                }
                _ = clinux_fcntl_set_flags(connection, 0)
                serve(connection, answer)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        held.withLock { $0.forEach { _ = close($0) } }
        try? FileManager.default.removeItem(atPath: directory)
    }

    private func serve(_ connection: Int32, _ answer: (Request) -> Answer) {
        if case .slam = answer(Request(line: "", head: "", body: "")) {
            close(connection)
            return
        }
        guard let request = readRequest(connection) else {
            close(connection)
            return
        }
        seen.withLock { $0.append(request) }
        let text: String
        var staysOpen = false
        switch answer(request) {
        case .reply(let status, let type, let body):
            let length = status == 204 ? "" : "Content-Length: \(body.utf8.count)\r\n"
            text = "HTTP/1.1 \(status) X\r\nContent-Type: \(type)\r\n\(length)\r\n\(body)"
        case .raw(let bytes): text = bytes
        case .stream(let bytes):
            text = bytes
            staysOpen = true
        case .hangUp, .slam: text = ""
        case .silence:
            held.withLock { $0.append(connection) }
            return
        }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let sent = bytes.withUnsafeBytes {
                send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { break }
            bytes = bytes.dropFirst(sent)
        }
        if staysOpen {
            held.withLock { $0.append(connection) }
        } else {
            close(connection)
        }
    }

    private func readRequest(_ connection: Int32) -> Request? {
        var received = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            if let end = received.range(of: Data("\r\n\r\n".utf8)) {
                let head = String(decoding: received[..<end.lowerBound], as: UTF8.self)
                let lines = head.components(separatedBy: "\r\n")
                let length =
                    lines.first { $0.hasPrefix("Content-Length: ") }
                    .flatMap { Int($0.dropFirst(16)) } ?? 0
                if received.count - end.upperBound >= length {
                    return Request(
                        line: lines[0], head: head,
                        body: String(decoding: received[end.upperBound...], as: UTF8.self))
                }
            }
            let count = read(connection, &buffer, buffer.count)
            guard count > 0 else { return nil }
            received.append(contentsOf: buffer[..<count])
        }
    }
}
