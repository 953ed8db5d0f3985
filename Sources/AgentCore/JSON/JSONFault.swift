/// Why bytes are not a JSON document that this program takes; it never carries the bytes.
package struct JSONFault: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Reason: Equatable, Sendable {
        case unexpectedByte
        case unexpectedEnd
        case trailingBytes
        case tooDeep
        case tooLong
        case byteOrderMark
        case invalidUTF8
        case badEscape
        case loneSurrogate
        case controlCharacter
        case badNumber
    }

    package let reason: Reason

    /// Where it showed, in bytes from the start.
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String {
        let what =
            switch reason {
            case .unexpectedByte: "unexpected byte"
            case .unexpectedEnd: "unexpected end"
            case .trailingBytes: "bytes after the value"
            case .tooDeep: "nested too deep"
            case .tooLong: "too long"
            case .byteOrderMark: "byte order mark"
            case .invalidUTF8: "invalid UTF-8"
            case .badEscape: "bad escape"
            case .loneSurrogate: "half of a surrogate pair"
            case .controlCharacter: "control character in a string"
            case .badNumber: "malformed number"
            }
        return "\(what) at \(offset)"
    }
}
