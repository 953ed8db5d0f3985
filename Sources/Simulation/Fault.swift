/// What goes wrong, or is done to the machine.
package enum Fault: Int, CaseIterable, Sendable {
    // Processes.
    case exchangeKilled
    case agentKilled
    case bothKilled
    /// The user's service manager stops canopyd and starts it again later, in the same boot.
    case stopped
    /// Another canopyd of the user's, with another runtime directory and a slot of its own, takes the place of
    /// the one that serves, which leaves its slot to the service manager.
    case replaced
    case suspended
    case rebooted
    case powerCut

    // Clocks and configuration.
    case clockStepped
    case modeChanged

    // The network and what stands in it: spells, and single requests.
    case networkDown
    case portalSpell
    case outageSpell
    case throttlingSpell
    case requestLost
    case answerLost
    case answerCut
    case requestQueued
    case portal
    case serverError
    case serverErrorAfterRotation
    case throttled
    case unavailable
    case answerWithoutAccessToken
    /// A 401 for an access token although its session is alive.
    case accessTokenRefused

    // The server's own doings.
    case sessionRevoked
    case identityRevoked
    case identityInactive

    // The keyring.
    case keyringLocked
    case keyringGone
    case keyringHangs
    case keyringKilled
    case keyringCallFailed
    /// A new item was begun and got no secret.
    case emptyItemLeft
    case keyringDropsWrites
    case keyringReset
    case keyringRestored

    // The successor slot.
    case slotUnwritable

    // The state directory.
    case diskFull
    case stateUnreadable
    case stateCallFailed
    case stateDeleted
    /// Keyring and state directory come back as new files.
    case homeRestored
    /// Only files that differ come back: the anchor keeps its inode.
    case filesRestored

    // Copies.
    case homeCopied

    /// Whether a process was killed, by somebody or with its machine.
    package var isKill: Bool {
        switch self {
        case .exchangeKilled, .agentKilled, .bothKilled, .keyringKilled, .powerCut: true
        case .stopped, .replaced, .suspended, .rebooted, .clockStepped, .modeChanged, .networkDown,
            .portalSpell, .outageSpell, .throttlingSpell, .requestLost, .answerLost, .answerCut,
            .requestQueued,
            .portal, .serverError, .serverErrorAfterRotation, .throttled, .unavailable,
            .answerWithoutAccessToken, .accessTokenRefused, .sessionRevoked, .identityRevoked,
            .identityInactive, .keyringLocked, .keyringGone, .keyringHangs, .keyringCallFailed,
            .emptyItemLeft, .keyringDropsWrites, .keyringReset, .keyringRestored, .slotUnwritable,
            .diskFull, .stateUnreadable, .stateCallFailed, .stateDeleted, .homeRestored,
            .filesRestored, .homeCopied:
            false
        }
    }
}
