extension RotationMachine {
    /// What the successor slot is known to hold.
    package enum Slot: Equatable, Sendable {
        case empty
        /// A successor that the keyring has not taken.
        case unstored
        /// What a keyring that writes late has taken, until it has written it: then it is given it once
        /// more, and after as long again it has written for sure, and the slot is emptied.
        case kept(until: BootTime, isRewritten: Bool)
    }

    /// Whether the successor waits in the slot for the keyring.
    package var isUnstored: Bool { slot == .unstored }

    /// For how long the slot still keeps what was reported as stored; nil if nothing was.
    package func slotKeptFor(at now: BootTime) -> TimeSpan? {
        guard case .kept(let until, _) = slot else { return nil }
        return max(.zero, until - now)
    }

    /// Whether what the slot keeps was stored twice.
    package var isSlotRewritten: Bool {
        guard case .kept(_, let isRewritten) = slot else { return false }
        return isRewritten
    }

    /// Whether the exchange that runs looks after what the slot keeps, and spends nothing.
    package var isSettling: Bool {
        guard case .kept = slot, case .exchanging(let exchange) = phase else { return false }
        return exchange.job == .rotate
    }
}
