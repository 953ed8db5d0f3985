/// The bytes of a successor slot: a header that is written last, and the session behind it.
///
/// The header carries the length and a checksum. A write that a kill cut short leaves a header of zeros, and
/// is known by that: it is emptied, unless the kill came when only the header was missing. All other bytes
/// that cannot be read come from a later version of canopyd, which alone can say whether they are the only copy
/// of a successor: they are left (I5). A format to come must begin with a byte other than zero, too.
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
        let header = UnsafeRawBufferPointer(rebasing: bytes.prefix(headerBytes))
        let body = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(headerBytes))
        let isCutShort = header.allSatisfy { $0 == 0 }
        guard isCutShort || fits(header, body) else { return .newerFormat(nil) }
        do throws(StoredSession.Unreadable) {
            // JSON that is whole says so by itself.
            return .session(try StoredSession(decoding: body, in: memory))
        } catch {
            switch error {
            case .newerFormat(let version): return .newerFormat(version)
            case .malformed: return isCutShort ? .torn : .newerFormat(nil)
            }
        }
    }

    private static func fits(
        _ header: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer
    ) -> Bool {
        header.count == headerBytes
            && UInt32(bigEndian: header.loadUnaligned(as: UInt32.self)) == magic
            && Int(UInt32(bigEndian: header.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
                == body.count
            && UInt64(bigEndian: header.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                == checksum(body)
    }

    /// What is told of a slot that a later version of canopyd has filled: it may have the only copy of the
    /// next token, and nobody but that version can store it.
    package static func newerFormat(_ version: Int64?) -> Failure {
        Failure(
            .storageFailed,
            "the next token waits in a successor slot that a later version of canopyd has filled "
                + "(\(version.map { "format \($0)" } ?? "in a form that this one does not know")); run that "
                + "version again, which stores it, or give it up with canopyctl logout --local: that "
                + "destroys it, and leaves the session alive on the server until it expires",
            remedy: .laterVersion)
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
