internal import AgentCore
internal import LinuxSystem

/// A request's body that must not be seen, as it arrives.
final class SecretBody {
    private var buffer: SecretBuffer

    init(capacity: Int) {
        buffer = SecretBuffer(capacity: capacity, in: .locked)
    }

    func append(_ bytes: UnsafeRawBufferPointer) {
        buffer.append(contentsOf: bytes)
    }

    func secret() -> Secret { buffer.secret() }
}
