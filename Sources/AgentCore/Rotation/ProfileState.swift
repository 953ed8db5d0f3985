/// What a profile is said to be (INTERFACE, "Profile states").
package enum ProfileState: String, Sendable, CaseIterable {
    case active
    case refreshing
    /// Cannot rotate now; the token in hand is good.
    case degraded
    case keyringLocked = "keyring_locked"
    case keyringUnavailable = "keyring_unavailable"
    /// No token in hand, server not reachable.
    case offline
    case refused
    case storageFailed = "storage_failed"
    case signInRequired = "signin_required"
}
