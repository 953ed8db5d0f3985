/// Puts a session into the keyring such that it is really there.
package struct ItemStore<World: ExchangeWorld> {
    private let world: World

    package init(_ world: World) {
        self.world = world
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
                .keyringUnavailable, "the keyring returned something else than was stored in it")
        }
    }

    /// Waits until a keyring that writes late has written, and stores again what it has lost meanwhile:
    /// for an exchange whose slot cannot keep the session.
    package func outlast(_ session: StoredSession) throws(World.Interruption) {
        while true {
            try world.pause(for: RotationTiming.lateStoreHold)
            guard try confirm(session) != nil else { return }
            // A failure is ignored: it is found in the next turn.
            _ = try store(session)
        }
    }
}
