/// The file of the state directory that knows a profile's sign-ins.
enum StateFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        let anchor = try? KnownSignIns.file(decoding: bytes)
        guard let signIns = try? KnownSignIns(decoding: bytes) else { return }
        let file = anchor ?? Anchor(inode: .max, birth: .min)
        signIns.encoded(in: file).withUnsafeBytes { written in
            guard let again = try? KnownSignIns(decoding: written),
                let place = try? KnownSignIns.file(decoding: written)
            else { return law(false, "what is written can be read") }
            law(again == signIns && place == file, "sign-ins are what was written")
            law(
                again.encoded(in: file).elementsEqual(written),
                "the same sign-ins are the same bytes")
        }
        for (signIn, mark) in signIns.marks {
            law(mark >= 0 && signIns.mark(of: signIn) == mark, "a mark is not negative")
        }
        check(transitions: signIns)
    }

    /// What no file, however odd, may make possible.
    private static func check(transitions before: KnownSignIns) {
        guard let current = before.current else { return }
        var signIns = before
        signIns.raiseMark(of: current, to: 5)
        law((signIns.mark(of: current) ?? 0) >= 5, "a mark is raised")
        signIns.raiseMark(of: current, to: 1)
        law((signIns.mark(of: current) ?? 0) >= 5, "a mark is never lowered")
        signIns.bury(
            KnownSignIns.Death(
                signIn: current, generation: 5, reason: .revokedOrExpired,
                at: WallTime(milliseconds: 0)))
        law(!signIns.knowsAlive(current) && !signIns.expectsItem, "what is dead stays dead")
    }
}
