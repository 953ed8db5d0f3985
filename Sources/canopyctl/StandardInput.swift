internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Standard input, for the tools that ask in a format of their own.
enum StandardInput {
    /// All that comes, in locked memory: what a tool wants stored is a secret.
    static func readAll() throws(Complaint) -> Secret {
        var buffer = SecretBuffer(in: .locked)
        while true {
            var count = 0
            let chunk = Secret(capacity: Limits.readBytes, in: .locked) { target in
                count = CLinux.read(STDIN_FILENO, target.baseAddress, target.count)
                return max(0, count)
            }
            if count < 0 {
                let failure = SystemError.last("read", "standard input")
                if failure.code == EINTR { continue }
                throw Complaint(.failure, "standard input cannot be read", detail: "\(failure)")
            }
            if count == 0 { return buffer.secret() }
            buffer.append(chunk)
            guard buffer.count <= Limits.credentialRequestBytes else {
                throw Complaint(
                    .failure, "standard input is longer than any request for a credential",
                    detail: "the limit is \(Limits.credentialRequestBytes) bytes")
            }
        }
    }
}
