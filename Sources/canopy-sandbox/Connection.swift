internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem
internal import SandboxRules

/// One client's connection: bytes in, bytes out.
final class Connection {
    /// Names the connection for as long as the process runs; a descriptor's number comes again.
    let number: Int
    let descriptor: FileDescriptor
    /// What arrived and is no request yet.
    var input: [UInt8] = []
    private var output: [UInt8] = []
    private var sent = 0
    /// Whether a request is being handled, so that the next one has to wait.
    var isBusy = false
    /// The family whose token that request presents.
    var family: FamilyID?
    /// Whether the request being handled lets the connection go on.
    var keepsAlive = true
    /// Whether the connection ends once everything is sent.
    private var isEnding = false

    /// The most input that is kept: one request of the largest kind, and the start of another.
    private static let inputBytes = Limits.requestHeadBytes + Limits.requestBodyBytes + 4096

    init(number: Int, descriptor: consuming FileDescriptor) {
        self.number = number
        self.descriptor = descriptor
    }

    var hasOutput: Bool { sent < output.count }

    /// What poll(2) is to wait for.
    var interest: Int16 {
        var events: Int16 = 0
        if input.count < Self.inputBytes, !isEnding { events |= Int16(POLLIN) }
        if hasOutput { events |= Int16(POLLOUT) }
        return events
    }

    /// Reads what is there.
    ///
    /// False once the client has closed its side, or is gone.
    func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while input.count < Self.inputBytes {
            let count = recv(descriptor.number, &chunk, chunk.count, 0)
            if count == 0 { return false }
            if count < 0 {
                if errno == EINTR { continue }
                return errno == EAGAIN
            }
            input.append(contentsOf: chunk[0..<count])
        }
        return true
    }

    func queue(_ bytes: [UInt8], thenEnd: Bool) {
        output.append(contentsOf: bytes)
        isEnding = isEnding || thenEnd
    }

    /// Makes its end a reset for the client.
    func resetAtEnd() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor.number, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    /// Sends what the kernel takes.
    ///
    /// False once the connection is over.
    func transmit() -> Bool {
        while hasOutput {
            let count = output[sent...].withUnsafeBytes {
                send(descriptor.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                return errno == EAGAIN
            }
            sent += count
        }
        output = []
        sent = 0
        return !isEnding
    }
}
