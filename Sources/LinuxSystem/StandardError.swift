internal import Glibc

/// Words for people, on descriptor 2: the C library's `stderr` is a global that Swift refuses.
package enum StandardError {
    /// Writes the text and a newline; that nobody reads it is no error.
    package static func write(_ text: String) {
        var line = text + "\n"
        line.withUTF8 { bytes in
            _ = Glibc.write(2, bytes.baseAddress, bytes.count)
        }
    }
}
