internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// One unit that waits for its credential.
final class CredentialDelivery {
    /// What the unit asked for; nil for somebody who is not systemd.
    let request: CredentialRequest?
    let caller: Caller

    private let descriptor: FileDescriptor
    private let onEnd: () -> Void
    private var watch: DescriptorWatch?
    private var answer = Answer.awaited
    private var sent = 0

    private enum Answer {
        case awaited
        case token(Secret)
        /// Zeroes, more of them than a credential may have.
        case refusal
    }

    /// `onEnd` is called once nothing more can be said, and may let go of this.
    init(
        _ descriptor: consuming FileDescriptor, _ request: CredentialRequest?, _ caller: Caller,
        _ loop: EventLoop, onEnd: @escaping () -> Void
    ) throws(SystemError) {
        self.descriptor = descriptor
        self.request = request
        self.caller = caller
        self.onEnd = onEnd
        watch = try loop.watch(self.descriptor.number, []) { [unowned self] readiness in
            if readiness.isDisjoint(with: [.hungUp, .failed]) { write() } else { end() }
        }
    }

    /// Whether no answer was given yet.
    var isWaiting: Bool {
        if case .awaited = answer { true } else { false }
    }

    /// Sends the token: in one go if the kernel takes it, since a canopyd that dies half way leaves
    /// the unit with half a token.
    func send(_ token: Secret) {
        // Doubled by the kernel for its own bookkeeping; a refusal leaves what there is.
        var size = Int32(clamping: token.count)
        setsockopt(
            descriptor.number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        answer = .token(token)
        write()
    }

    /// Sends so much that the unit does not start.
    func refuse() {
        answer = .refusal
        write()
    }

    private func write() {
        while true {
            let count: Int
            switch answer {
            case .awaited:
                return
            case .token(let token):
                guard sent < token.count else { return end() }
                count = token.withBytes { bytes in
                    Glibc.send(
                        descriptor.number, bytes.baseAddress.map { $0 + sent },
                        bytes.count - sent, Int32(MSG_NOSIGNAL))
                }
            case .refusal:
                guard sent <= Limits.credentialBytes else { return end() }
                count = withUnsafeTemporaryAllocation(
                    byteCount: Limits.refusalPieceBytes, alignment: 1
                ) { zeroes in
                    zeroes.initializeMemory(as: UInt8.self, repeating: 0)
                    return Glibc.send(
                        descriptor.number, zeroes.baseAddress, zeroes.count, Int32(MSG_NOSIGNAL))
                }
            }
            if count >= 0 {
                sent += count
                continue
            }
            if errno == EINTR { continue }
            // Otherwise it has gone, as it does at a refusal.
            guard errno == EAGAIN else { return end() }
            watch?.wait(for: .writable)
            return
        }
    }

    // Before its descriptor.
    deinit { watch = nil }

    private func end() {
        watch = nil
        onEnd()
    }
}
