/// Puts a session into the keyring such that it is really there.
package struct ItemStore<World: ExchangeWorld> {
    private let world: World

    package init(_ world: World) {
        self.world = world
    }

    /// When a session that is stored now may be presented, which is later where the keyring's owner
    /// writes late.
    package func hold(of header: SessionHeader) -> NotBefore? {
        guard !world.keyringWritesAtOnce else { return header.notBefore }
        let now = Stamp(world.now(), boot: world.boot)
        let remaining = header.notBefore?.remaining(at: now.moment, boot: now.boot) ?? .zero
        if header.attemptedAt != nil {
            // What is left of its grace is not to be waited away. The same wait, told anew, makes other bytes
            // of it, for a keyring to which the same are no change.
            return NotBefore(since: now, span: remaining)
        }
        let hold = RotationTiming.lateStoreHold
        guard remaining < hold else { return header.notBefore }
        return NotBefore(since: now, span: hold)
    }

    /// Writes, reads back, compares, and makes it survive a power cut; the reason if any fails.
    package func store(_ session: StoredSession) throws(World.Interruption) -> Failure? {
        if let failure = try world.writeItem(session) { return failure }
        return try confirm(session)
    }

    /// The same without the writing.
    package func confirm(_ session: StoredSession) throws(World.Interruption) -> Failure? {
        // Of several items the one with this sign-in id is meant.
        let knowing = KnownSignIns(current: session.header.signIn)
        switch try world.readItem(knowing: knowing) {
        case .failed(let failure):
            return failure
        case .found(.session(let stored)) where stored == session:
            return try world.syncKeyring()
        case .found:
            return Failure(
                .keyringUnavailable, "the keyring returned something else than was stored in it",
                remedy: .examination)
        }
    }

    /// Waits until a keyring that writes late has written what it is given twice, and stores again what it has lost
    /// meanwhile: for an exchange whose slot cannot keep the session.
    ///
    /// Returns what the item holds in the end.
    package func outlast(
        _ session: StoredSession
    ) throws(World.Interruption) -> StoredSession {
        var session = session
        var isRewritten = false
        while true {
            try world.pause(awakeFor: RotationTiming.lateWrite)
            let isLost = try confirm(session) != nil
            if isRewritten, !isLost { return session }
            session = session.toldAnew(
                for: isLost ? RotationTiming.lateStoreHold : RotationTiming.lateWrite,
                at: world.now(), boot: world.boot)
            isRewritten = !isLost
            // A failure is ignored: it is found in the next turn.
            _ = try store(session)
        }
    }
}

extension StoredSession {
    /// The same session in other bytes, for a keyring to which the same bytes are no change: its hold is
    /// told anew, and lasts for `span` at the least.
    ///
    /// KeePassXC counts as saved what changes after it has read the entry and before the file is in its place,
    /// and does not save it until something else changes. A second write, further from the first than
    /// such a saving takes, leaves one of the two in the file: where the second is passed over as well, the
    /// saving that does it has read the first.
    package func toldAnew(
        for span: TimeSpan = RotationTiming.lateWrite, at now: Moment, boot: BootID
    ) -> StoredSession {
        let left = header.notBefore?.remaining(at: now, boot: boot) ?? .zero
        var told = self
        told.header.notBefore = NotBefore(
            since: Stamp(now, boot: boot), span: max(left, span))
        return told
    }
}
