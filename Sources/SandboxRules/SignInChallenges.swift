package import AgentCore

/// What an identity can prove itself with besides its password.
package struct SecondFactors: Sendable {
    /// The six digits that pass as an authenticator's, at any time: nothing here has a clock.
    package let totp: String
    /// The eight digits of the e-mail, which count once it was sent.
    package let emailCode: String
    /// Codes that count once each, without dashes, in capitals.
    package fileprivate(set) var recoveryCodes: [String]

    /// The factors of one identity; recovery codes may be given as people see them.
    package init(totp: String, emailCode: String, recoveryCodes: [String]) {
        self.totp = totp
        self.emailCode = emailCode
        self.recoveryCodes = recoveryCodes.map(Self.plain)
    }

    /// Dashes and case of a recovery code mean nothing.
    fileprivate static func plain(_ code: String) -> String {
        code.filter { $0 != "-" }.uppercased()
    }
}

/// Sign-ins that have passed the password and wait for a second factor.
package struct SignInChallenges: Sendable {
    /// How long a challenge can be answered; a usual length, the documents name none.
    package static let lifetime = TimeSpan.seconds(300)

    /// Wrong codes after which a challenge is locked; the documents say "too many".
    package static let attempts = 5

    /// The time between two e-mails of one challenge, as the documents have it.
    package static let emailInterval = TimeSpan.seconds(60)

    private struct Challenge: Sendable {
        let key: KeyID
        let identity: IdentityID
        let expiresAt: WallTime
        var failures = 0
        var emailSentAt: WallTime?
    }

    private var factors: [IdentityID: SecondFactors] = [:]
    private var challenges: [UInt64: Challenge] = [:]

    /// No challenges, and nobody who has to pass one.
    package init() {}

    /// Requires a second factor of the identity from now on.
    package mutating func require(_ factors: SecondFactors, of identity: IdentityID) {
        self.factors[identity] = factors
    }

    /// Whether a password is not enough for the identity.
    package func areRequired(of identity: IdentityID) -> Bool {
        factors[identity] != nil
    }

    /// Opens a challenge named `id`, a new number; when it expires.
    package mutating func open(
        _ id: UInt64, key: KeyID, identity: IdentityID, at now: WallTime
    ) -> WallTime {
        let expiresAt = now + Self.lifetime
        challenges[id] = Challenge(key: key, identity: identity, expiresAt: expiresAt)
        return expiresAt
    }

    /// A way to answer.
    package enum Factor: Sendable {
        case totp, emailCode, recoveryCode
    }

    /// What answering led to.
    package enum Outcome: Equatable, Sendable {
        /// The challenge is over, and the session may be had.
        case accepted(KeyID, IdentityID)
        case wrongCode
        /// No such challenge: never opened, expired, answered, or locked after wrong codes.
        case gone
    }

    /// Answers a challenge.
    package mutating func answer(
        _ id: UInt64, _ factor: Factor, code: String, at now: WallTime
    ) -> Outcome {
        guard let challenge = open(id, at: now) else { return .gone }
        guard take(code, factor, of: challenge) else {
            challenges[id]?.failures += 1
            return .wrongCode
        }
        challenges[id] = nil
        return .accepted(challenge.key, challenge.identity)
    }

    private func open(_ id: UInt64, at now: WallTime) -> Challenge? {
        guard let challenge = challenges[id], challenge.expiresAt > now,
            challenge.failures < Self.attempts
        else { return nil }
        return challenge
    }

    private mutating func take(
        _ code: String, _ factor: Factor, of challenge: Challenge
    ) -> Bool {
        guard let known = factors[challenge.identity] else { return false }
        switch factor {
        case .totp: return code == known.totp
        case .emailCode: return challenge.emailSentAt != nil && code == known.emailCode
        case .recoveryCode:
            guard let index = known.recoveryCodes.firstIndex(of: SecondFactors.plain(code)) else {
                return false
            }
            factors[challenge.identity]?.recoveryCodes.remove(at: index)
            return true
        }
    }

    /// What asking for an e-mail led to.
    package enum Sending: Equatable, Sendable {
        case sent
        /// One was sent less than ``emailInterval`` ago; how long to wait.
        case tooSoon(TimeSpan)
        case gone
    }

    /// Sends the e-mail's code, as far as anybody here can tell.
    package mutating func sendEmail(_ id: UInt64, at now: WallTime) -> Sending {
        guard let challenge = open(id, at: now) else { return .gone }
        if let sentAt = challenge.emailSentAt, now - sentAt < Self.emailInterval {
            return .tooSoon(Self.emailInterval - (now - sentAt))
        }
        challenges[id]?.emailSentAt = now
        return .sent
    }
}
