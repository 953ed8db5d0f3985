/// What goes wrong, or is done to the machine.
package enum Fault: Int, CaseIterable, Sendable {
    // Processes.
    case exchangeKilled
    case agentKilled
    case bothKilled
    case suspended
    case rebooted
    case powerCut

    // Clocks.
    case clockStepped

    // The network and what stands in it.
    case networkDown
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

    // The server's own doings.
    case sessionRevoked
    case identityInactive

    // The keyring.
    case keyringLocked
    case keyringGone
    case keyringHangs
    case keyringCallFailed
    case keyringDropsWrites
    case keyringReset
    case keyringRestored

    // The state directory.
    case diskFull
    case stateUnreadable
    case stateCallFailed
    case stateDeleted
    case homeRestored

    // Copies.
    case homeCopied
}
