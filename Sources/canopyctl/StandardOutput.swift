internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Standard output: data alone.
enum StandardOutput {
    static var style: Style { Style(descriptor: STDOUT_FILENO) }

    /// Writes all of `bytes`; the caller's buffer is the only copy.
    static func write(_ bytes: UnsafeRawBufferPointer) throws(Complaint) {
        do throws(SystemError) {
            try LinuxSystem.StandardOutput.write(bytes)
        } catch {
            throw Complaint(.failure, "the output cannot be written", detail: "\(error)")
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
