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

    /// Writes `text` and a newline.
    static func print(_ text: String) throws(Complaint) {
        var bytes = [UInt8](text.utf8)
        bytes.append(UInt8(ascii: "\n"))
        let failure: Complaint? = bytes.withUnsafeBytes { buffer in
            do throws(Complaint) {
                try write(buffer)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }
}
