internal import AgentCore
internal import SandboxRules

/// Canopy: the sandbox's rules, and its knowledge of what became of each token.
struct SimulatedServer {
    var ledger: SessionLedger
    let lifetime: Int64
    let key: KeyID
    let identity: IdentityID

    /// Whether a sign-out that names a refresh token is refused as malformed.
    let isStrict: Bool

    typealias Family = FamilyID

    /// By token number.
    private(set) var fates: [TokenFate] = []

    /// What became of one refresh token.
    struct TokenFate {
        let family: FamilyID
        let generation: Int
        /// The token whose presentation brought it; itself for a sign-in's.
        let parent: Int
        /// Whether the session belongs to another machine's copy of the home.
        let isOfCopy: Bool
        /// Whether it was ever on its way to the server.
        var wasSent = false
        /// How far any successor of it came.
        var successor = Progress.none
        /// Whether a request that nobody waited for had the server replace it.
        var wasReplacedLate = false
        /// When the server retired it.
        var firstAnsweredAt: Int64 = 0
        /// When a request that carried it last left.
        var lastSentAt: Int64 = 0
        /// When the latest request that carried it was known to have brought nothing.
        var knownLostAt: Int64 = 0
        /// Whether the answer that was lost was the last of its exchange's quick repetitions.
        var wasLastRetry = false
        /// When an exchange received it.
        var receivedAt: Int64 = 0
        /// Before this it must not be presented: the hold, and KWallet's.
        var notBefore: Int64 = 0
        var receivedInBoot = 0
        /// When the keyring was last given it.
        var storedAt: Int64 = 0
        var storedInBoot = 0
        var hasAccessToken = true
        /// Whether a successor of it was in the slot when the slot was lost.
        var lostItsSlot = false
        /// Whether a successor of it was in the keyring and not on the disk in a power cut.
        var lostByPowerCut = false
        /// Whether a late keyring had a successor of it and was killed before it wrote.
        var lostByLateKeyring = false

        enum Progress: Int, Comparable {
            case none
            case received
            case inSlot
            case stored
            case durable

            static func < (left: Progress, right: Progress) -> Bool {
                left.rawValue < right.rawValue
            }
        }
    }

    /// Milliseconds since 1970 when the simulation starts.
    static let epoch: Int64 = 1_790_000_000_000

    static func now(_ time: Int64) -> WallTime {
        WallTime(milliseconds: epoch + time / 1_000_000)
    }

    init(rules: ServerRules, lifetime: Int64, isStrict: Bool) {
        ledger = SessionLedger(rules: rules)
        self.lifetime = lifetime
        self.isStrict = isStrict
        key = ledger.addKey(delivery: .body)
        identity = ledger.addIdentity(email: "ada@example.com", password: "countess")
    }

    /// How long a sign-in has to wait; nil if it may go on, and it counts then.
    mutating func signInWait(isOfCopy: Bool, at time: Int64) -> TimeSpan? {
        ledger.signInWait(address: isOfCopy ? 2 : 1, at: SimulatedServer.now(time))
    }

    /// A new session; the number of its refresh token.
    mutating func signIn(isOfCopy: Bool, at time: Int64) -> Int? {
        let fresh = fates.count
        guard
            let family = ledger.signIn(
                key: key, identity: identity, fresh: RefreshTokenID(UInt64(fresh)),
                at: SimulatedServer.now(time))
        else { return nil }
        fates.append(
            TokenFate(family: family, generation: 0, parent: fresh, isOfCopy: isOfCopy))
        return fresh
    }

    /// Presents a token.
    ///
    /// `isLate`: nobody waits for the answer.
    mutating func refresh(_ token: Int, isLate: Bool, at time: Int64) -> RefreshOutcome {
        let fresh = fates.count
        let family = fates[token].family
        let before = Int(ledger.currentToken(of: family).number)
        let outcome = ledger.refresh(
            RefreshTokenID(UInt64(token)), fresh: RefreshTokenID(UInt64(fresh)),
            at: SimulatedServer.now(time))
        switch outcome {
        case .rotated(_, let id), .harmlessRetry(_, let id):
            if Int(id.number) == fresh {
                fates.append(
                    TokenFate(
                        family: family, generation: fates[token].generation + 1, parent: token,
                        isOfCopy: fates[token].isOfCopy))
                // The successor of an answer that was lost is retired by the answer to its retry.
                if before != token, isLate { fates[before].wasReplacedLate = true }
            }
        case .familyRevoked, .identityRevoked, .refused:
            break
        }
        return outcome
    }

    /// Whose access token it is; nil if it is over, or its session is.
    func family(of accessToken: Secret, at time: Int64) -> FamilyID? {
        let number = Answers.family(of: accessToken)
        guard Answers.expiry(of: accessToken) > SimulatedServer.now(time) else { return nil }
        return ledger.allFamilies.first { $0.number == number && isAlive($0, at: time) }
    }

    func isAlive(_ family: FamilyID, at time: Int64) -> Bool {
        ledger.ending(of: family) == nil && !isExpired(family, at: time)
    }

    /// Whether the family's current token has outlived the server's limit.
    func isExpired(_ family: FamilyID, at time: Int64) -> Bool {
        guard ledger.rules.refreshTokenLifetime != nil else { return false }
        return !ledger.sessions(of: identity, at: SimulatedServer.now(time)).contains {
            $0.family == family
        } && ledger.ending(of: family) == nil
    }

    mutating func noteSuccessor(_ token: Int, _ progress: TokenFate.Progress) {
        let parent = fates[token].parent
        guard parent != token else { return }
        fates[parent].successor = max(fates[parent].successor, progress)
    }

    mutating func note(_ token: Int, _ change: (inout TokenFate) -> Void) {
        change(&fates[token])
    }
}
