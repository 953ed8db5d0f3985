/// Which faults an episode has, and how many.
package enum Theme: String, CaseIterable, Sendable {
    case kills
    case network
    case proxy
    /// The one fault that the hold cannot cover: a request that is delivered after it.
    case lateProxy = "late-proxy"
    case keyring
    case power
    case storage
    case copies
    case clocks
    case signIns = "sign-ins"
    /// Two canopyds of one user, one after the other, each with a slot of its own.
    case twoSlots = "two-slots"
    case everything

    /// What goes wrong in it.
    package var faults: Set<Fault> {
        var faults = Set(rates.events + rates.answers)
        if rates.keyringCall > 0 { faults.formUnion([.keyringCallFailed, .emptyItemLeft]) }
        if rates.stateCall > 0 { faults.insert(.stateCallFailed) }
        if rates.refusedAccess > 0 { faults.insert(.accessTokenRefused) }
        return faults
    }

    var rates: FaultRates {
        switch self {
        case .kills:
            FaultRates(
                atStep: 40,
                events: [
                    .exchangeKilled, .agentKilled, .bothKilled, .keyringKilled, .stopped,
                    .networkDown,
                ],
                request: 6, answers: [.requestLost, .answerLost, .serverError])
        case .network:
            FaultRates(
                atStep: 300,
                events: [
                    .networkDown, .networkDown, .portalSpell, .outageSpell, .throttlingSpell,
                    .agentKilled, .suspended,
                ],
                request: 2,
                answers: [
                    .requestLost, .answerLost, .answerCut, .portal, .serverError,
                    .serverErrorAfterRotation, .throttled, .unavailable, .answerWithoutAccessToken,
                ])
        case .proxy:
            FaultRates(
                atStep: 100, events: [.exchangeKilled, .bothKilled, .suspended, .rebooted],
                request: 3, answers: [.requestQueued, .requestQueued, .answerLost])
        case .lateProxy:
            FaultRates(
                atStep: 200, events: [.exchangeKilled, .bothKilled],
                request: 3, answers: [.requestQueued], deliversAfterHold: true)
        case .keyring:
            FaultRates(
                atStep: 60,
                events: [
                    .keyringLocked, .keyringGone, .keyringHangs, .keyringDropsWrites,
                    .keyringKilled, .slotUnwritable, .exchangeKilled, .agentKilled, .bothKilled,
                    .stopped,
                ],
                request: 20, answers: [.answerLost], keyringCall: 25)
        case .power:
            FaultRates(
                atStep: 50,
                events: [
                    .powerCut, .powerCut, .rebooted, .stopped, .suspended, .keyringLocked,
                    .agentKilled,
                ],
                request: 10, answers: [.answerLost, .requestLost], keyringCall: 200)
        case .storage:
            FaultRates(
                atStep: 50,
                events: [
                    .diskFull, .stateUnreadable, .keyringLocked, .exchangeKilled, .agentKilled,
                    .sessionRevoked, .rebooted, .powerCut,
                ],
                request: 10, answers: [.answerLost], keyringCall: 100, stateCall: 20)
        case .copies:
            FaultRates(
                atStep: 60,
                events: [
                    .homeCopied, .homeCopied, .homeCopied, .keyringRestored, .homeRestored,
                    .filesRestored, .stateDeleted, .keyringReset, .rebooted, .bothKilled,
                ],
                request: 20, answers: [.answerLost])
        case .clocks:
            FaultRates(
                atStep: 40,
                events: [.clockStepped, .clockStepped, .modeChanged, .suspended, .rebooted],
                request: 8, answers: [.answerLost, .requestQueued, .throttled, .unavailable])
        case .signIns:
            FaultRates(
                atStep: 60,
                events: [
                    .exchangeKilled, .bothKilled, .keyringLocked, .diskFull, .powerCut,
                    .sessionRevoked, .identityRevoked, .agentKilled, .stopped, .keyringKilled,
                ],
                request: 8, answers: [.answerLost, .requestLost, .serverError, .throttled],
                keyringCall: 50, stateCall: 50, userActs: 3, refusedAccess: 6)
        case .twoSlots:
            FaultRates(
                atStep: 40,
                events: [.replaced, .replaced, .replaced, .agentKilled, .exchangeKilled],
                request: 2, answers: [.throttled, .throttled, .unavailable, .answerLost],
                keyringWritesLate: true)
        case .everything:
            FaultRates(
                atStep: 80,
                events: [
                    .exchangeKilled, .agentKilled, .bothKilled, .stopped, .replaced, .suspended,
                    .rebooted, .powerCut, .clockStepped, .modeChanged, .networkDown, .portalSpell,
                    .outageSpell,
                    .throttlingSpell, .sessionRevoked, .identityRevoked, .identityInactive,
                    .keyringLocked, .keyringGone, .keyringHangs, .keyringKilled,
                    .keyringDropsWrites, .slotUnwritable, .diskFull, .stateUnreadable,
                    .homeCopied, .keyringRestored, .homeRestored, .filesRestored, .stateDeleted,
                    .keyringReset,
                ],
                request: 6,
                answers: [
                    .requestLost, .answerLost, .answerCut, .portal, .serverError, .requestQueued,
                    .serverErrorAfterRotation, .throttled, .unavailable, .answerWithoutAccessToken,
                ],
                keyringCall: 100, stateCall: 100, userActs: 20, refusedAccess: 10)
        }
    }
}

/// How often what goes wrong: once in so many times, 0 for never.
struct FaultRates {
    /// Calls of an exchange, at each of which one of `events` may happen.
    let atStep: Int
    let events: [Fault]
    /// Requests, each of which may get one of `answers`.
    let request: Int
    let answers: [Fault]
    var keyringCall = 0
    var stateCall = 0
    /// Clients of which one signs in or out.
    var userActs = 60
    /// Requests with a good access token, of which one is refused.
    var refusedAccess = 0
    /// Whether a proxy delivers after the hold, which nothing can protect from.
    var deliversAfterHold = false
    /// Whether no keyring writes at once.
    var keyringWritesLate = false
}
