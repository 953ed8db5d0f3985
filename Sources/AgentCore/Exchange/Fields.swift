/// Length-prefixed fields: what crosses the socket pair between canopyd and an exchange.
///
/// A message is its length (4 bytes, big endian), a kind (1 byte), and fields: a tag (1 byte), a
/// length (4 bytes, big endian), bytes. There is no version: an upgrade puts a new exchange beside a
/// canopyd that runs on, so a tag that is not there means what it was before the tag was made, and one
/// that is not known is passed over. Nothing of it is trusted.
package struct FieldWriter: ~Copyable {
    private var buffer: SecretBuffer

    package init(kind: UInt8, in memory: SecretMemory) {
        buffer = SecretBuffer(capacity: 1024, in: memory)
        buffer.append(kind)
    }

    package mutating func field(_ tag: UInt8, _ bytes: UnsafeRawBufferPointer) {
        buffer.append(tag)
        withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { buffer.append(contentsOf: $0) }
        buffer.append(contentsOf: bytes)
    }

    package mutating func field(_ tag: UInt8, _ text: String?) {
        guard var text else { return }
        text.withUTF8 { field(tag, UnsafeRawBufferPointer($0)) }
    }

    package mutating func field(_ tag: UInt8, _ number: Int64?) {
        guard let number else { return }
        withUnsafeBytes(of: number.bigEndian) { field(tag, $0) }
    }

    package mutating func field(_ tag: UInt8, _ secret: Secret?) {
        secret?.withBytes { field(tag, $0) }
    }

    /// The message with its length in front.
    package consuming func finish(in memory: SecretMemory) -> Secret {
        buffer.withBytes { body in
            Secret(capacity: 4 + body.count, in: memory) { target in
                withUnsafeBytes(of: UInt32(body.count).bigEndian) { target.copyBytes(from: $0) }
                UnsafeMutableRawBufferPointer(rebasing: target[4...]).copyMemory(from: body)
                return target.count
            }
        }
    }
}

/// One message, taken apart.
///
/// A view: valid only while the bytes are.
package struct FieldReader {
    package let kind: UInt8
    private var fields: [(tag: UInt8, range: Range<Int>)] = []
    private let bytes: UnsafeRawBufferPointer

    /// How long the message is that starts with these bytes, its length included; nil if fewer than
    /// four bytes are there, or it is longer than any message may be.
    package static func length(_ bytes: UnsafeRawBufferPointer) -> LengthReading {
        guard bytes.count >= 4 else { return .incomplete }
        let length = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
        guard length >= 1, length <= Limits.messageBytes else { return .malformed }
        return .length(length + 4)
    }

    package enum LengthReading: Equatable, Sendable {
        case incomplete
        case malformed
        case length(Int)
    }

    /// Returns nil if the bytes (without the length in front) are no message.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard let kind = bytes.first else { return nil }
        self.kind = kind
        self.bytes = bytes
        var position = 1
        while position < bytes.count {
            guard position + 5 <= bytes.count else { return nil }
            let length = Int(
                UInt32(
                    bigEndian: bytes.loadUnaligned(
                        fromByteOffset: position + 1, as: UInt32.self)))
            let start = position + 5
            guard length <= bytes.count - start else { return nil }
            fields.append((bytes[position], start..<start + length))
            position = start + length
        }
    }

    package func bytes(_ tag: UInt8) -> UnsafeRawBufferPointer? {
        guard let field = fields.first(where: { $0.tag == tag }) else { return nil }
        return UnsafeRawBufferPointer(rebasing: bytes[field.range])
    }

    /// All fields of the tag, in order.
    package func all(_ tag: UInt8) -> [UnsafeRawBufferPointer] {
        fields.filter { $0.tag == tag }.map { UnsafeRawBufferPointer(rebasing: bytes[$0.range]) }
    }

    package func text(_ tag: UInt8) -> String? {
        bytes(tag).map { String(decoding: $0, as: UTF8.self) }
    }

    package func number(_ tag: UInt8) -> Int64? {
        guard let bytes = bytes(tag), bytes.count == 8 else { return nil }
        return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
    }

    package func secret(_ tag: UInt8, in memory: SecretMemory) -> Secret? {
        bytes(tag).map { Secret(copying: $0, in: memory) }
    }
}
