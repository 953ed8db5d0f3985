/// What presenting a refresh token led to.
package enum RefreshOutcome: Equatable, Sendable {
    /// The token was the current one; it is retired, and this is its successor.
    case rotated(FamilyID, RefreshTokenID)
    /// The token was retired moments ago and its successor never presented: a lost answer.
    case harmlessRetry(FamilyID, RefreshTokenID)
    /// A replay after the grace, its successor never presented: this session is over.
    case familyRevoked
    /// A replay after its successor was presented: every session of the identity is over.
    case identityRevoked
    /// Nothing changed but what the reason says.
    case refused(Refusal)

    /// Why a token was refused without a consequence.
    package enum Refusal: Equatable, Sendable {
        /// No such token was ever issued.
        case unknown
        /// The session had ended before.
        case ended
        /// The token was current, and its lifetime is over.
        case expired
        /// The token is as it was: an identity made active again can go on.
        case identityInactive
    }
}

/// Whether a sign-in may be had.
package enum SignInCheck: Equatable, Sendable {
    /// Key, address and password fit.
    case accepted(KeyID, IdentityID)
    /// No such key, or a revoked one.
    case keyRefused
    /// No such address, or another password.
    case credentialsRefused
    /// Right, but not allowed.
    case identityInactive
}

/// Why a session is over.
package enum Ending: Equatable, Sendable {
    /// By its owner, from the session itself.
    case loggedOut
    /// By its owner from the list of sessions, or by an administrator.
    case revoked
    /// A retired token of the family was presented after the grace.
    case replay
    /// A retired token of the identity was presented after its successor.
    case theft
}
