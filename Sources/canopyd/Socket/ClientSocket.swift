internal import AgentCore
internal import CLinux
internal import Glibc

/// A client's socket: takes and gives bytes without waiting.
///
/// Whoever has it closes it.
struct ClientSocket {
    let descriptor: Int32

    enum Received {
        case bytes(Int)
        /// None now.
        case nothing
        /// No more, in an orderly way or not.
        case end
    }

    /// Reads once.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
        while true {
            let result = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if result > 0 { return .bytes(result) }
            if result < 0, errno == EINTR { continue }
            return result < 0 && errno == EAGAIN ? .nothing : .end
        }
    }

    /// Sends all of a few bytes; false if the socket does not take them.
    func sendAll(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { send($0) } == bytes.count
    }

    /// Returns how many bytes the socket took; nil if the peer is gone.
    func send(_ bytes: UnsafeRawBufferPointer) -> Int? {
        taken(clinux_send(descriptor, bytes.baseAddress, bytes.count))
    }

    /// Sends head and body from byte `start` on, without a copy of either; returns as
    /// ``send(_:)`` does.
    func send(_ head: [UInt8], _ body: Reply.Body, from start: Int) -> Int? {
        head.withUnsafeBytes { head in
            switch body {
            case .none, .stream:
                return send(head, nil, nil, from: start)
            case .bytes(let bytes):
                return bytes.withUnsafeBytes { send(head, $0, nil, from: start) }
            case .secret(let secret):
                return secret.withBytes { send(head, $0, nil, from: start) }
            case .line(let secret):
                return secret.withBytes { secret in
                    withUnsafeBytes(of: UInt8(ascii: "\n")) { newline in
                        send(head, secret, newline, from: start)
                    }
                }
            }
        }
    }

    private func send(
        _ head: UnsafeRawBufferPointer, _ first: UnsafeRawBufferPointer?,
        _ second: UnsafeRawBufferPointer?, from start: Int
    ) -> Int? {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: 3) { pieces in
            var count = 0
            var skipped = start
            func add(_ bytes: UnsafeRawBufferPointer?) {
                guard let bytes, !bytes.isEmpty else { return }
                let skip = min(skipped, bytes.count)
                skipped -= skip
                guard skip < bytes.count else { return }
                let rest = UnsafeRawBufferPointer(rebasing: bytes[skip...])
                pieces[count] = iovec(
                    iov_base: UnsafeMutableRawPointer(mutating: rest.baseAddress),
                    iov_len: rest.count)
                count += 1
            }
            add(head)
            add(first)
            add(second)
            return taken(clinux_send_pieces(descriptor, pieces.baseAddress, count))
        }
    }

    private func taken(_ result: Int) -> Int? {
        if result >= 0 { return result }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// Tells the client that nothing more comes; it may send still.
    func endSending() {
        // It fails if the client is gone, which reading will tell.
        shutdown(descriptor, Int32(SHUT_WR))
    }

    func close() {
        Glibc.close(descriptor)
    }
}
