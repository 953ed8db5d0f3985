internal import AgentCore
internal import LinuxSystem
internal import SandboxRules

/// The server's state: everything but connections.
struct Canopy {
    var ledger: SessionLedger
    var challenges = SignInChallenges()
    var mint = TokenMint()
    var faults: FaultQueue
    let wire: WireSwitches
    let lifetime: TimeSpan
    /// `iss`, and what Canopy would call its base URL.
    let issuer: String
    let nativeKey: (text: String, id: KeyID)
    let webKey: (text: String, id: KeyID)
    /// How far the sandbox's clock is ahead of the machine's.
    private(set) var advance = TimeSpan.zero
    private var accessTokens: [String: AccessGrant] = [:]

    struct AccessGrant {
        let family: FamilyID
        let identity: IdentityID
        let expiresAt: WallTime
    }

    /// The people who can sign in.
    ///
    /// Their passwords are public.
    static let people = [
        (email: "ada@example.com", password: "correct horse battery staple"),
        (email: "grace@example.com", password: "nanoseconds"),
        (email: second.email, password: "frequency hopping"),
    ]

    /// Whom a password is not enough of, and what else passes.
    static let second = (
        email: "hedy@example.com", totp: "135790", emailCode: "24681357",
        recoveryCodes: ["ABCD-EFGH-IJKL-MNOP", "QRST-UVWX-YZ23-4567"]
    )

    init(_ options: Options, port: UInt16) {
        ledger = SessionLedger(rules: options.rules)
        faults = FaultQueue(options.faults)
        wire = options.wire
        lifetime = options.lifetime
        issuer = "http://127.0.0.1:\(port)"
        nativeKey = (TokenMint.key(), ledger.addKey(delivery: .body))
        webKey = (TokenMint.key(), ledger.addKey(delivery: .cookie))
        for person in Self.people {
            let identity = ledger.addIdentity(email: person.email, password: person.password)
            guard person.email == Self.second.email else { continue }
            challenges.require(
                SecondFactors(
                    totp: Self.second.totp, emailCode: Self.second.emailCode,
                    recoveryCodes: Self.second.recoveryCodes),
                of: identity)
        }
    }

    /// The sandbox's time, which ``advance(by:)`` moves.
    var now: WallTime { WallTime.now + advance }

    mutating func advance(by span: TimeSpan) {
        advance = advance + span
    }

    func key(_ text: String) -> KeyID? {
        if text == nativeKey.text { return nativeKey.id }
        if text == webKey.text { return webKey.id }
        return nil
    }

    /// A new access token of the session.
    mutating func accessToken(of family: FamilyID) -> String {
        let now = now
        // A long run with short lifetimes would keep every token it ever made.
        if accessTokens.count > 4096 {
            accessTokens = accessTokens.filter { $0.value.expiresAt > now }
        }
        let identity = ledger.identity(of: family)
        let token = TokenMint.accessToken(
            issuer: issuer, identity: Names.identity(identity), issuedAt: now,
            expiresAt: now + lifetime)
        accessTokens[token] = AccessGrant(
            family: family, identity: identity, expiresAt: now + lifetime)
        return token
    }

    /// What the access token stands for; nil if it is not one of ours or has expired.
    ///
    /// An ended session's access tokens live on: Canopy's are checked offline.
    func grant(_ accessToken: String?) -> AccessGrant? {
        guard let accessToken, let grant = accessTokens[accessToken], grant.expiresAt > now else {
            return nil
        }
        return grant
    }
}
