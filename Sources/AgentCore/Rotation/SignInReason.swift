/// Why a profile needs a new sign-in (INTERFACE, `signin_required`).
package enum SignInReason: String, Sendable, CaseIterable {
    /// The server says that the token is dead.
    case revokedOrExpired = "revoked_or_expired"

    /// The server says that the token is dead, after an attempt whose answer never came.
    case rotationLost = "rotation_lost"

    /// The keyring or the state directory came from a backup, or one of them is missing.
    case restoredCopy = "restored_copy"

    /// The keyring holds a session of another machine only: a copied or shared home.
    case otherMachine = "other_machine"

    /// The state directory knows a sign-in of which an open keyring holds nothing.
    case keyringReset = "keyring_reset"

    /// The user signed out.
    case signedOut = "signed_out"

    /// Whether nothing but a new sign-in can help.
    ///
    /// Only a verdict and a sign-out are final: the other reasons follow from what the store
    /// holds, and are looked at again when the keyring changes.
    package var isFinal: Bool {
        switch self {
        case .revokedOrExpired, .rotationLost, .signedOut: true
        case .restoredCopy, .otherMachine, .keyringReset: false
        }
    }
}
