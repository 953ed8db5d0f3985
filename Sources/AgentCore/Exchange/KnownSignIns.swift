/// What the state directory knows of one profile on one machine: which sign-ins there were, and how
/// far each was used.
///
/// No secrets.
///
/// It is the part of the store that a restored keyring does not bring back, and so the judge of
/// what the keyring holds. A value; the edge writes it durably before what it says is relied on.
package struct KnownSignIns: Equatable, Sendable {
    /// The sign-in that counts; nil before the first, and after a sign-out.
    package private(set) var current: SignInID?

    /// Sign-ins that were begun and not finished.
    ///
    /// Several, if some were cut short.
    package private(set) var pending: [SignInID]

    /// By sign-in, the highest generation ever presented.
    package private(set) var marks: [SignInID: Int64]

    /// Sign-ins that are over for good, kept for ever: verdicts and sign-outs.
    package private(set) var dead: [Death]

    /// Who was signed in where, for a status while the keyring is locked.
    package private(set) var account: Account?

    /// The end of a sign-in.
    package struct Death: Equatable, Sendable {
        package let signIn: SignInID
        package let generation: Int64
        package let reason: SignInReason
        package let at: WallTime

        package init(signIn: SignInID, generation: Int64, reason: SignInReason, at: WallTime) {
            self.signIn = signIn
            self.generation = generation
            self.reason = reason
            self.at = at
        }
    }

    /// What is shown of a profile whose keyring cannot be read.
    package struct Account: Equatable, Sendable {
        package let baseURL: String
        package let identity: Identity
        package let signedInAt: WallTime

        package init(baseURL: String, identity: Identity, signedInAt: WallTime) {
            self.baseURL = baseURL
            self.identity = identity
            self.signedInAt = signedInAt
        }
    }

    package init(
        current: SignInID? = nil, pending: [SignInID] = [], marks: [SignInID: Int64] = [:],
        dead: [Death] = [], account: Account? = nil
    ) {
        self.current = current
        self.pending = pending
        self.marks = marks
        self.dead = dead
        self.account = account
    }

    /// The highest generation of the sign-in that was ever presented; nil if none was.
    package func mark(of signIn: SignInID) -> Int64? {
        marks[signIn]
    }

    package func death(of signIn: SignInID) -> Death? {
        dead.last { $0.signIn == signIn }
    }

    /// The highest generation that is known of the present sign-in, for a status while the keyring is
    /// locked; 0 where none was ever presented.
    package var lastGeneration: Int64? {
        current.map { death(of: $0)?.generation ?? mark(of: $0) ?? 0 }
    }

    /// Whether the sign-in is one of ours and not over.
    package func knowsAlive(_ signIn: SignInID) -> Bool {
        (current == signIn || pending.contains(signIn)) && death(of: signIn) == nil
    }

    /// Whether the profile has a sign-in that is not over, or begun.
    package var expectsItem: Bool {
        guard let current else { return false }
        return death(of: current) == nil
    }

    /// Whether `signIn` is alive and was begun after `other`, or `other` is over or not one of ours.
    package func isNewer(_ signIn: SignInID, than other: SignInID) -> Bool {
        order(of: signIn) > order(of: other)
    }

    /// The present one, then the pending ones as they were begun; what is not alive comes before all.
    private func order(of signIn: SignInID) -> Int {
        guard knowsAlive(signIn) else { return -1 }
        return pending.firstIndex(of: signIn).map { $0 + 1 } ?? 0
    }

    /// Before presenting: from now on `generation` may have been presented.
    ///
    /// Never lowers a mark.
    package mutating func raiseMark(of signIn: SignInID, to generation: Int64) {
        marks[signIn] = max(generation, marks[signIn] ?? generation)
    }

    /// Takes back a mark that was raised for a request which never left.
    ///
    /// Only for the exchange that raised it, under the same lock: `before` is what it had found.
    package mutating func withdrawMark(of signIn: SignInID, to before: Int64?) {
        marks[signIn] = before
    }

    /// First phase of a sign-in: the id is accepted beside the present one.
    package mutating func begin(_ signIn: SignInID) {
        guard !pending.contains(signIn) else { return }
        pending.append(signIn)
    }

    /// Takes back a sign-in that the server refused: nothing was stored under its id.
    package mutating func abandon(_ signIn: SignInID) {
        pending.removeAll { $0 == signIn }
    }

    /// Second phase: the item is stored, so the new id alone counts.
    package mutating func complete(_ signIn: SignInID, account: Account) {
        current = signIn
        pending = []
        marks = marks.filter { $0.key == signIn }
        self.account = account
    }

    /// Records an end that is not to be forgotten.
    ///
    /// After a sign-out the profile is unknown.
    package mutating func bury(_ death: Death) {
        if self.death(of: death.signIn) == nil {
            dead.append(death)
        }
        pending.removeAll { $0 == death.signIn }
        if death.reason == .signedOut {
            current = nil
            account = nil
        } else if current == nil {
            current = death.signIn
        }
    }

    /// Ends every sign-in that a restored file speaks of.
    package mutating func buryCopies(at now: WallTime) {
        for signIn in pending + [current].compactMap({ $0 }) where death(of: signIn) == nil {
            bury(
                Death(
                    signIn: signIn, generation: mark(of: signIn) ?? 0, reason: .restoredCopy,
                    at: now))
        }
    }
}
