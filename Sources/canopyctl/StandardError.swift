internal import CLinux
internal import Glibc

/// Standard error: words for people.
enum StandardError {
    static var style: Style { Style(descriptor: STDERR_FILENO) }

    /// Writes `text` and a newline.
    ///
    /// A failure is ignored: there is nowhere left to tell it.
    static func say(_ text: String) {
        var bytes = [UInt8](text.utf8)
        bytes.append(UInt8(ascii: "\n"))
        var done = 0
        while done < bytes.count {
            let written = bytes.withUnsafeBytes {
                CLinux.write(STDERR_FILENO, $0.baseAddress.map { $0 + done }, bytes.count - done)
            }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { return }
            done += written
        }
    }
}
