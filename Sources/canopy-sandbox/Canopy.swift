internal import AgentCore
internal import LinuxSystem
internal import SandboxRules

/// The server's state: everything but connections.
struct Canopy {
    var ledger: SessionLedger
    var challenges = SignInChallenges()
    var mint: TokenMint
    var faults: FaultQueue
    let wire: WireSwitches
    let lifetime: TimeSpan
    /// `iss`, and what Canopy would call its base URL.
    let issuer: String
    /// Everybody who can sign in.
    let people: [Person]
    let nativeKey: (text: String, id: KeyID)
    let webKey: (text: String, id: KeyID)
    /// How far the sandbox's clock is ahead of the machine's.
    private(set) var advance = TimeSpan.zero
    /// Until when connections are refused; nil while they are not.
    var refusesUntil: BootTime?
    private var accessTokens: [AccessTokenDigest: AccessGrant] = [:]
    private var accessTokensToSweepAt = 4096

    /// Stands for an access token, which may be a megabyte long.
    private struct AccessTokenDigest: Hashable {
        let first: Int
        let second: Int

        init(_ token: String) {
            first = token.hashValue
            var hasher = Hasher()
            hasher.combine(first)
            hasher.combine(token)
            second = hasher.finalize()
        }
    }

    struct AccessGrant {
        let family: FamilyID
        let identity: IdentityID
        let expiresAt: WallTime
    }

    typealias Person = (email: String, password: String)

    /// The people who can always sign in.
    ///
    /// Their passwords are public.
    private static let residents: [Person] = [
        (email: "ada@example.com", password: "correct horse battery staple"),
        (email: "grace@example.com", password: "nanoseconds"),
        (email: second.email, password: "frequency hopping"),
    ]

    /// The residents, and user1 to user`count`.
    static func people(extra count: Int) -> [Person] {
        residents
            + (0..<count).map { number in
                (email: "user\(number + 1)@example.com", password: "password of user\(number + 1)")
            }
    }

    /// Keys are public by design, and these are the same in every sandbox: documents name them.
    static let keys = (native: "pk_sandbox_native", web: "pk_sandbox_web")

    /// Whom a password is not enough of, and what else passes.
    static let second = (
        email: "hedy@example.com", totp: "135790", emailCode: "24681357",
        recoveryCodes: ["ABCD-EFGH-IJKL-MNOP", "QRST-UVWX-YZ23-4567"]
    )

    init(_ options: Options, port: UInt16) {
        ledger = SessionLedger(rules: options.rules)
        mint = TokenMint(
            accessTokenBytes: options.accessTokenBytes,
            refreshTokenBytes: options.refreshTokenBytes)
        faults = FaultQueue(options.faults, chaos: options.chaos)
        wire = options.wire
        advance = options.clock
        lifetime = options.lifetime
        issuer = "http://127.0.0.1:\(port)"
        nativeKey = (Self.keys.native, ledger.addKey(delivery: .body))
        webKey = (Self.keys.web, ledger.addKey(delivery: .cookie))
        people = Self.people(extra: options.extraIdentities)
        for person in people {
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
        // A long run with short lifetimes would keep every token it ever made. The next sweep
        // waits for as many again as were left, so that sweeping stays cheap with long ones.
        if accessTokens.count > accessTokensToSweepAt {
            accessTokens = accessTokens.filter { $0.value.expiresAt > now }
            accessTokensToSweepAt = max(4096, 2 * accessTokens.count)
        }
        let identity = ledger.identity(of: family)
        let token = mint.accessToken(
            issuer: issuer, identity: Names.identity(identity), issuedAt: now,
            expiresAt: now + lifetime)
        accessTokens[AccessTokenDigest(token)] = AccessGrant(
            family: family, identity: identity, expiresAt: now + lifetime)
        return token
    }

    /// What the access token stands for; nil if it is not one of ours or has expired.
    ///
    /// An ended session's access tokens live on: Canopy's are checked offline.
    func grant(_ accessToken: String?) -> AccessGrant? {
        guard let accessToken, let grant = accessTokens[AccessTokenDigest(accessToken)],
            grant.expiresAt > now
        else { return nil }
        return grant
    }
}
