/// Decides whether the stored refresh token may be presented.
///
/// A value without I/O: the exchange collects the evidence under the profile's lock, asks, and
/// does what it is told. Step 2 of ROTATION, sentence by sentence.
package enum PresentationGuard {
    /// What was found.
    package struct Evidence: Sendable {
        package var slot: SlotReading
        package var item: ItemReading
        /// nil where the state directory or the profile's file does not exist.
        package var signIns: KnownSignIns?
        /// The copy in the runtime directory: same boot only; the higher mark counts.
        package var runtimeMarks: [SignInID: Int64]
        /// nil where there is none.
        package var anchor: Anchor?
        package var now: Moment
        package var boot: BootID
        /// What canopyd knows already; nil for nothing.
        package var known: Generation?
        /// Whether presenting is wanted at all, or settling what is there.
        package var mayPresent: Bool
        /// Whether the keyring's owner is known to write when it says it has.
        package var keyringWritesAtOnce: Bool
        /// For how long the slot still keeps what is known to have been stored; nil if it is not known: of a store
        /// that failed, nobody knows when a late keyring did it after all.
        package var slotKeptFor: TimeSpan?

        package init(
            slot: SlotReading, item: ItemReading, signIns: KnownSignIns?,
            runtimeMarks: [SignInID: Int64], anchor: Anchor?, now: Moment, boot: BootID,
            known: Generation?, mayPresent: Bool, keyringWritesAtOnce: Bool = true,
            slotKeptFor: TimeSpan? = nil
        ) {
            self.slot = slot
            self.item = item
            self.signIns = signIns
            self.runtimeMarks = runtimeMarks
            self.anchor = anchor
            self.now = now
            self.boot = boot
            self.known = known
            self.mayPresent = mayPresent
            self.keyringWritesAtOnce = keyringWritesAtOnce
            self.slotKeptFor = slotKeptFor
        }
    }

    /// What to do.
    package enum Decision: Equatable, Sendable {
        /// Store the slot's successor, read it back, make it durable, and ask again; the slot is emptied
        /// when the keyring has surely written.
        case storeSuccessor
        /// The item holds the slot's generation: make up for reading back and durability, empty
        /// the slot, and ask again; for a keyring that writes late it is stored once more first.
        case confirmSuccessor
        /// The slot holds nothing of use: empty it, and ask again.
        case dropSuccessor
        /// The slot holds what only a later version can read, in this format, if it tells one: leave it, and
        /// present nothing, for what the item holds may have been spent for it.
        case leaveSuccessor(format: Int64?)
        /// Go on to step 3. `ambiguous`: these bytes may have been presented before.
        case present(ambiguous: Bool)
        /// Report the item as it is; nothing is to be presented. `ambiguous` as above.
        case adopt(ambiguous: Bool)
        /// Too early: hold, floor, or told to wait.
        case wait(TimeSpan)
        case signInRequired(SignInReason)
    }

    package static func decide(_ evidence: Evidence) -> Decision {
        if let decision = decideSlot(evidence) { return decision }
        guard case .session(let item) = evidence.item else {
            return absent(evidence)
        }
        guard let signIns = evidence.signIns else { return .signInRequired(.restoredCopy) }
        if let death = signIns.death(of: item.signIn) {
            // How an earlier sign-in ended says nothing of the present one, whose item is gone: of a
            // keyring that writes late, or was restored.
            let isEarlier = item.signIn != signIns.current && signIns.expectsItem
            return .signInRequired(isEarlier ? .keyringReset : death.reason)
        }
        guard signIns.knowsAlive(item.signIn) else { return .signInRequired(.restoredCopy) }
        let mark = highestMark(of: item.signIn, evidence)
        if let mark, item.generation < mark { return .signInRequired(.restoredCopy) }
        guard item.anchor == evidence.anchor else { return .signInRequired(.restoredCopy) }

        let ambiguous = mark == item.generation
        guard evidence.mayPresent else { return .adopt(ambiguous: ambiguous) }
        if let known = evidence.known,
            known.signIn != item.signIn || known.number < item.generation,
            item.access?.canServe(at: evidence.now, boot: evidence.boot) == true
        {
            return .adopt(ambiguous: ambiguous)
        }
        let told =
            ambiguous && hasHold(item)
            ? item.notBefore?.remainingOfWait(at: evidence.now, boot: evidence.boot)
            : item.notBefore?.remaining(at: evidence.now, boot: evidence.boot)
        var wait = told ?? .zero
        if !ambiguous {
            wait = max(wait, floorRemaining(item, evidence), slotKeptFor(evidence) ?? .zero)
        }
        return wait > .zero ? .wait(wait) : .present(ambiguous: ambiguous)
    }

    /// Whether the item's access token may be handed out while the slot holds what only a later version can
    /// read: if it might be without that slot.
    package static func mayServe(_ evidence: Evidence) -> Bool {
        var readOnly = evidence
        readOnly.slot = .empty
        readOnly.mayPresent = false
        guard case .adopt = decide(readOnly) else { return false }
        return true
    }

    /// Whether the slot's successor is newer than everything that was presented, of a sign-in that
    /// is alive: then its access token may serve before the keyring can be read.
    package static func isAhead(_ slot: SessionHeader, of state: StateContents) -> Bool {
        guard let signIns = state.signIns, signIns.knowsAlive(slot.signIn) else { return false }
        let marks = [signIns.mark(of: slot.signIn), state.runtimeMarks[slot.signIn]]
        return marks.compactMap(\.self).allSatisfy { $0 < slot.generation }
    }

    /// For how long the slot still keeps what the item holds as well; nil where it is not kept.
    ///
    /// A keyring that writes late, and ends before, comes back with the item that it had: until it has
    /// written for sure, the slot has the only copy that survives.
    package static func slotKeptFor(_ evidence: Evidence) -> TimeSpan? {
        guard !evidence.keyringWritesAtOnce, let left = evidence.slotKeptFor, left > .zero,
            case .session(let slot) = evidence.slot, case .session(let item) = evidence.item,
            item.position == slot.position
        else { return nil }
        return left
    }

    private static func decideSlot(_ evidence: Evidence) -> Decision? {
        let slot: SessionHeader
        switch evidence.slot {
        case .empty: return nil
        case .torn: return .dropSuccessor
        case .newerFormat(let version): return .leaveSuccessor(format: version)
        case .session(let header): slot = header
        }
        switch evidence.item {
        case .session(let item) where item.signIn == slot.signIn:
            if item.generation < slot.generation { return .storeSuccessor }
            guard item.generation == slot.generation else { return .dropSuccessor }
            guard evidence.keyringWritesAtOnce || evidence.slotKeptFor != nil else {
                return .storeSuccessor
            }
            return slotKeptFor(evidence) == nil ? .confirmSuccessor : nil
        case .session(let item):
            // A keyring that lost a sign-in brings back the one before.
            return evidence.signIns?.isNewer(slot.signIn, than: item.signIn) == true
                ? .storeSuccessor : .dropSuccessor
        case .none, .otherMachine:
            return evidence.signIns?.knowsAlive(slot.signIn) == true
                ? .storeSuccessor : .dropSuccessor
        }
    }

    private static func absent(_ evidence: Evidence) -> Decision {
        guard let signIns = evidence.signIns else {
            return .signInRequired(evidence.item == .otherMachine ? .otherMachine : .signedOut)
        }
        if let current = signIns.current, let death = signIns.death(of: current) {
            return .signInRequired(death.reason)
        }
        if evidence.item == .otherMachine { return .signInRequired(.otherMachine) }
        return .signInRequired(signIns.expectsItem ? .keyringReset : .signedOut)
    }

    private static func highestMark(of signIn: SignInID, _ evidence: Evidence) -> Int64? {
        let durable = evidence.signIns?.mark(of: signIn)
        guard let copy = evidence.runtimeMarks[signIn] else { return durable }
        return max(copy, durable ?? copy)
    }

    /// Whether what is waited for is a hold, and not what a server asked for, which an attempt comes before.
    private static func hasHold(_ item: SessionHeader) -> Bool {
        item.attemptedAt == nil
    }

    /// The floor counts from the last rotation; a sign-in is none.
    ///
    /// The same bytes again are no new rotation either, and must not miss the server's grace.
    private static func floorRemaining(_ item: SessionHeader, _ evidence: Evidence) -> TimeSpan {
        guard let last = item.lastRotation else { return .zero }
        let age = last.age(at: evidence.now, boot: evidence.boot)
        return max(.zero, RotationTiming.floor(lifetime: item.access?.lifetime) - age)
    }
}

/// One generation of one sign-in.
package struct Generation: Equatable, Hashable, Sendable {
    package let signIn: SignInID
    package let number: Int64

    package init(signIn: SignInID, number: Int64) {
        self.signIn = signIn
        self.number = number
    }
}

/// What the successor slot holds.
package enum SlotReading: Equatable, Sendable {
    case empty
    /// Bytes that are no whole session: a write was cut short, which a reader cannot mend.
    case torn
    /// Written by a later version of canopyd, in this format; nil where it tells none, so that nothing is known
    /// of it but that no write of ours, whole or cut short, leaves such bytes.
    case newerFormat(Int64?)
    case session(SessionHeader)
}

/// What an unlocked keyring holds for a profile on this machine.
package enum ItemReading: Equatable, Sendable {
    /// No item, or one with an empty secret, which was never stored: gnome-keyring writes a new
    /// item in two steps, and a crash between them leaves that.
    case none
    /// Nothing for this machine, but something for another.
    case otherMachine
    case session(SessionHeader)
}
