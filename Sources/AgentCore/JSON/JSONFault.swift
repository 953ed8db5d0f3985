/// Why bytes are not the JSON that is accepted, and where.
///
/// Never holds a byte of the input: what is being parsed may be a secret.
package struct JSONFault: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Reason: Equatable, Sendable {
        case unexpectedByte
        case unexpectedEnd
        /// A byte order mark, which RFC 8259 8.1 lets a reader refuse.
        case byteOrderMark
        case invalidUTF8
        /// An unescaped byte below 0x20 in a string.
        case controlCharacter
        case invalidEscape
        /// Half a surrogate pair in `\u` escapes.
        case loneSurrogate
        case invalidNumber
        case tooDeep
        /// Bytes that follow the value.
        case trailingBytes
        /// More bytes than the reader can index (2 GiB).
        case tooLong
    }

    package let reason: Reason

    /// The offset of the offending byte, from 0; the number of bytes if they end too early.
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String {
        switch reason {
        case .unexpectedByte: "unexpected byte at \(offset)"
        case .unexpectedEnd: "unexpected end at \(offset)"
        case .byteOrderMark: "byte order mark at \(offset)"
        case .invalidUTF8: "invalid UTF-8 at \(offset)"
        case .controlCharacter: "unescaped control character at \(offset)"
        case .invalidEscape: "invalid escape at \(offset)"
        case .loneSurrogate: "half a surrogate pair at \(offset)"
        case .invalidNumber: "invalid number at \(offset)"
        case .tooDeep: "nested too deeply at \(offset)"
        case .trailingBytes: "bytes after the value at \(offset)"
        case .tooLong: "more bytes than can be read, \(offset)"
        }
    }
}
