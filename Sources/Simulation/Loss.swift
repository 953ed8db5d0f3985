/// Why a session ended that neither the user nor an administrator ended.
///
/// Only what no client could have averted; anything else is a ``Violation``.
package enum Loss: Int, CaseIterable, Sendable {
    /// The answer with the successor never came, and the token was presented after the grace.
    case successorNeverReceived
    /// The exchange was killed in the moment between the answer and the slot.
    case killedBeforeSlot
    /// The machine lost its power, or stopped while the keyring failed, before the successor was
    /// in the keyring.
    case slotLostUnstored
    /// The power was cut between the keyring's write and its fsync.
    case powerCutBeforeSync
    /// The keyring or the home was restored, reset or deleted, and the successor with it.
    case restored
    /// A proxy delivered an old request after the grace.
    case lateRequestAfterGrace
    /// A proxy's late request made the server replace the successor that we hold.
    case lateRequestReplacedSuccessor
    /// A proxy delivered an old request after the hold: the identity's sessions are over.
    case lateRequestAfterHold
    /// A refresh token's own lifetime passed.
    case expired
}
