import AgentCore
import SandboxRules

/// Two identities, a native and a web key, and a clock that stands still until it is moved.
final class Household {
    var ledger: SessionLedger
    let native: KeyID
    let web: KeyID
    let ada: IdentityID
    let grace: IdentityID
    var now = WallTime(seconds: 1_700_000_000)
    private var issued: UInt64 = 0

    init(_ adjust: (inout ServerRules) -> Void = { _ in }) {
        var rules = ServerRules()
        adjust(&rules)
        ledger = SessionLedger(rules: rules)
        native = ledger.addKey(delivery: .body)
        web = ledger.addKey(delivery: .cookie)
        ada = ledger.addIdentity(email: "ada@example.com", password: "one")
        grace = ledger.addIdentity(email: "grace@example.com", password: "two")
    }

    private func fresh() -> RefreshTokenID {
        issued += 1
        return RefreshTokenID(issued)
    }

    func wait(_ span: TimeSpan) {
        now = now + span
    }

    func revokeSession(row: RefreshTokenID, of identity: IdentityID) -> Bool {
        ledger.revokeSession(row: row, of: identity)
    }

    /// Lets a request with the token arrive, and leaves it there.
    func arrive(_ token: RefreshTokenID) {
        _ = ledger.requestArrived(token)
    }

    func signInWait(address: UInt64) -> TimeSpan? {
        ledger.signInWait(address: address, at: now)
    }

    /// Signs in; nil if it is refused.
    func signIn(
        _ key: KeyID? = nil, as identity: IdentityID? = nil
    ) -> (family: FamilyID, token: RefreshTokenID)? {
        let token = fresh()
        return ledger.signIn(
            key: key ?? native, identity: identity ?? ada, fresh: token, at: now
        ).map { ($0, token) }
    }

    func refresh(_ token: RefreshTokenID) -> RefreshOutcome {
        ledger.refresh(token, fresh: fresh(), at: now)
    }

    /// Refreshes with a token that is expected to be current; nil if it was not.
    func rotate(_ token: RefreshTokenID) -> RefreshTokenID? {
        switch refresh(token) {
        case .rotated(_, let successor): successor
        case .harmlessRetry, .familyRevoked, .identityRevoked, .refused: nil
        }
    }

    /// Presents a token that is expected to pass as a harmless retry; nil if it did not.
    func retry(_ token: RefreshTokenID) -> RefreshTokenID? {
        switch refresh(token) {
        case .harmlessRetry(_, let successor): successor
        case .rotated, .familyRevoked, .identityRevoked, .refused: nil
        }
    }
}
