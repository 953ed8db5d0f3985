internal import AgentCore
internal import SandboxRules

/// What the server makes of refresh tokens, and whose fault it is where a session ends.
extension Episode {
    /// A request that carries the token is on its way; whether one was before.
    func noteSent(_ token: Int) -> Bool {
        let fate = server.fates[token]
        while highest.count <= fate.family.number { highest.append(-1) }
        highest[fate.family.number] = max(highest[fate.family.number], fate.generation)
        let time = time
        server.note(token) {
            $0.wasSent = true
            $0.lastSentAt = time
        }
        return fate.wasSent
    }

    /// The server gets a token.
    func present(_ token: Int, isLate: Bool) -> RefreshOutcome {
        let outcome = server.refresh(token, isLate: isLate, at: time)
        log("the server, of token \(token)\(isLate ? " (late)" : ""): \(outcome)")
        switch outcome {
        case .rotated:
            let time = time
            server.note(token) { $0.firstAnsweredAt = time }
        case .harmlessRetry: break
        case .familyRevoked:
            isLate ? lose(.lateRequestAfterGrace) : lose(classify(token))
        case .identityRevoked:
            figures.incidents += 1
            if !isLate {
                violate("a token whose successor was presented ended every session of the identity")
            }
        case .refused(.expired): lose(.expired)
        case .refused: break
        }
        return outcome
    }

    func lose(_ loss: Loss?) {
        guard let loss else {
            return violate("a session was lost that need not have been")
        }
        log("lost: \(loss)")
        figures.losses[loss.rawValue] += 1
    }

    /// Why the family had to be revoked; nil if it need not have been.
    private func classify(_ token: Int) -> Loss? {
        let fate = server.fates[token]
        if fate.wasReplacedLate { return .lateRequestReplacedSuccessor }
        switch fate.successor {
        case .none: return couldAskInTime(fate) ? nil : .successorNeverReceived
        case .received: return .killedBeforeSlot
        case .inSlot: return fate.lostItsSlot ? .slotLostUnstored : nil
        case .stored:
            if fate.lostByPowerCut { return .powerCutBeforeSync }
            return wasEverRestored ? .restored : fate.lostItsSlot ? .slotLostUnstored : nil
        case .durable: return wasEverRestored ? .restored : nil
        }
    }

    /// Whether a lost answer could have been asked for again within the server's grace: it was known
    /// to be lost, nothing else went wrong, and there was more than time enough.
    private func couldAskInTime(_ fate: SimulatedServer.TokenFate) -> Bool {
        let graceEnds = fate.firstAnsweredAt + server.ledger.rules.grace.nanoseconds
        guard fate.lastSentAt > graceEnds else { return false }  // It was slow on its way.
        guard !fate.wasLastRetry else { return false }  // What follows is backed off.
        let ready = max(fate.knownLostAt, lastTrouble, networkDownUntil, spell?.until ?? 0)
        return ready + Episode.retryPatience < graceEnds
    }

    /// How soon after a failure the same bytes are asked for again, with all that an exchange does
    /// before: a start of canopyd's, the last of the quick retries, slow answers.
    private static let retryPatience: Int64 = 8_000_000_000

    // MARK: Late requests

    /// A request stays in a proxy that nobody waits for any more.
    func queueRequest(_ token: Int) {
        let isAfterHold = rates.deliversAfterHold && random.isOne(in: 4)
        let delay = Double(hold) * (isAfterHold ? 1.1 + 4 * random.draw() : random.draw())
        log("a request of token \(token) is queued for \(delay / 1e9) s")
        after(Int64(delay), .delivery(token: token, sent: time))
    }

    func deliver(_ token: Int, sent: Int64) {
        let outcome = present(token, isLate: true)
        guard outcome == .identityRevoked else { return }
        if time - sent > hold {
            lose(.lateRequestAfterHold)
        } else {
            violate("a late request within the hold ended every session of the identity")
        }
    }
}
