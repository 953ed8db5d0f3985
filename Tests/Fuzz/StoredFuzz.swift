/// The item in the keyring, and the slot that holds the same.
enum StoredFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        if case .session(let session) = SlotFormat.read(bytes, in: .ordinary) { check(session) }
        guard let session = try? StoredSession(decoding: bytes, in: .ordinary) else { return }
        check(session)
    }

    private static func check(_ session: StoredSession) {
        law(session.header.generation >= 0, "a generation is not negative")
        law(session.refreshToken.count > 0, "an empty token was never stored")
        law(session.header.access == session.accessToken?.life, "a life is a token's")
        session.encoded(in: .ordinary).withBytes { body in
            guard let again = try? StoredSession(decoding: body, in: .ordinary) else {
                return law(false, "what is written can be read")
            }
            law(again == session, "a session is what was written")
            check(slotOf: body, session)
        }
    }

    /// A slot holds all of it or nothing.
    private static func check(slotOf body: UnsafeRawBufferPointer, _ session: StoredSession) {
        var slot = SlotFormat.header(for: body)
        law(slot.count == SlotFormat.headerBytes, "a slot's header has its length")
        slot += body
        slot.withUnsafeBytes { whole in
            guard case .session(let kept) = SlotFormat.read(whole, in: .ordinary) else {
                return law(false, "a slot can be read")
            }
            law(kept == session, "a slot holds what was written")
        }
        // A write that is cut short has not come to the header.
        let cut = [UInt8](repeating: 0, count: SlotFormat.headerBytes) + body
        cut.withUnsafeBytes { whole in
            for length in stride(from: 1, to: whole.count, by: max(1, whole.count / 16)) {
                guard case .torn = SlotFormat.read(whole.first(length), in: .ordinary) else {
                    return law(false, "half a slot is torn")
                }
            }
            guard case .session(session) = SlotFormat.read(whole, in: .ordinary) else {
                return law(false, "a slot that lacks its header is whole")
            }
        }
        // One byte that is not what it was.
        let place = SlotFormat.headerBytes + Int(body[body.count / 2]) % body.count
        slot[place] ^= 1
        slot.withUnsafeBytes {
            guard case .newerFormat(nil) = SlotFormat.read($0, in: .ordinary) else {
                return law(false, "what no write of ours leaves is left alone")
            }
        }
    }
}
