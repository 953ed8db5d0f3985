/// The bytes of a successor slot: a header that is written last, and the session behind it.
///
/// The header carries the length and a checksum, so that a write that a kill cut short is known
/// as torn and not taken for a session.
package enum SlotFormat {
    /// Magic, length and checksum.
    package static let headerBytes = 16
    private static let magic: UInt32 = 0x434E_5059

    package static func header(for body: UnsafeRawBufferPointer) -> [UInt8] {
        var header: [UInt8] = []
        withUnsafeBytes(of: magic.bigEndian) { header.append(contentsOf: $0[...]) }
        withUnsafeBytes(of: UInt32(body.count).bigEndian) { header.append(contentsOf: $0[...]) }
        withUnsafeBytes(of: checksum(body).bigEndian) { header.append(contentsOf: $0[...]) }
        return header
    }

    /// The body in `bytes`, the slot's whole contents.
    package static func read(
        _ bytes: UnsafeRawBufferPointer, in memory: SecretMemory
    ) -> SlotContents {
        guard bytes.count > 0 else { return .empty }
        guard bytes.count > headerBytes,
            UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)) == magic,
            Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
                == bytes.count - headerBytes
        else { return .torn }
        let body = UnsafeRawBufferPointer(rebasing: bytes[headerBytes...])
        guard
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                == checksum(body)
        else { return .torn }
        do throws(StoredSession.Unreadable) {
            return .session(try StoredSession(decoding: body, in: memory))
        } catch {
            switch error {
            case .newerFormat(let version): return .newerFormat(version)
            case .malformed: return .torn
            }
        }
    }

    /// What is told of a slot that a later version of canopyd has filled: it has the only copy of the
    /// next token, and nobody but that version can store it.
    package static func newerFormat(_ version: Int64) -> Failure {
        Failure(
            .storageFailed,
            "the next token waits in a successor slot that a later version of canopyd has filled "
                + "(format \(version)); run that version again, which stores it, or give it up with "
                + "canopyctl logout --local")
    }

    /// FNV-1a: against cuts, not against forgers, who would need the descriptor itself.
    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return hash
    }
}
