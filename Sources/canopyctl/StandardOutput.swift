internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Standard output: data alone.
enum StandardOutput {
    static var style: Style { Style(descriptor: STDOUT_FILENO) }

    /// Writes all of `bytes`; the caller's buffer is the only copy.
    static func write(_ bytes: UnsafeRawBufferPointer) throws(Complaint) {
        var rest = bytes
        while !rest.isEmpty {
            let written = CLinux.write(STDOUT_FILENO, rest.baseAddress, rest.count)
            if written < 0 {
                let failure = SystemError.last("write", "standard output")
                if failure.code == EINTR { continue }
                throw Complaint(
                    .failure, "the output cannot be written", detail: "\(failure)")
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
    }

    /// Writes all of `secret`.
    static func write(_ secret: Secret) throws(Complaint) {
        try secret.withBytes { bytes throws(Complaint) in try write(bytes) }
    }

    /// Writes `text` and a newline.
    static func print(_ text: String) throws(Complaint) {
        var bytes = [UInt8](text.utf8)
        bytes.append(UInt8(ascii: "\n"))
        try write(bytes)
    }

    /// Writes all of `bytes`.
    static func write(_ bytes: [UInt8]) throws(Complaint) {
        let written = bytes.withUnsafeBytes { buffer in
            Result { () throws(Complaint) in try write(buffer) }
        }
        try written.get()
    }
}
