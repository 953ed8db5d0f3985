internal import AgentCore
internal import SandboxRules

/// What comes back over the network, as the exchange's client would hand it on.
extension Episode {
    func latency() -> Int64 {
        if isCalm || !random.isOne(in: 40) { return random.time(5, 300) }
        return random.time(300, 14_000)
    }

    /// How long it takes until a client knows that no answer comes: a reset, a dead path, or the
    /// whole of its patience.
    func silence() -> Int64 {
        switch random.below(4) {
        case 0: random.time(1, 100)
        case 1, 2: random.time(4900, 5200)
        default: 30_000_000_000
        }
    }

    /// Between a fast and a slow call of the keyring.
    func shortTime() -> Int64 { random.time(1, 12) }

    func plainAnswer(_ status: Int, _ body: String, retryAfter: String? = nil) -> Transmission {
        let date =
            random.isOne(in: 4) && retryAfter == nil
            ? nil : Answers.httpDate(SimulatedServer.now(time))
        return .answered(
            CanopyAnswer(
                status: status, retryAfter: retryAfter, date: date, body: Answers.secret(body)))
    }

    func envelopeAnswer(_ status: Int) -> Transmission {
        plainAnswer(status, Answers.envelope(status))
    }

    func portalAnswer() -> Transmission {
        let statuses = [200, 302, 307, 401, 403, 511]
        let status = statuses[random.below(statuses.count)]
        return plainAnswer(
            status, random.isOne(in: 2) ? Answers.portal : "{\"error\":\"sign in to the hotel\"}")
    }

    func serverErrorAnswer() -> Transmission {
        let statuses = [408, 500, 502, 503, 504]
        let status = statuses[random.below(statuses.count)]
        return plainAnswer(
            status, random.isOne(in: 2) ? Answers.portal : Answers.envelope(status))
    }

    /// Told to wait; `token` is the one that must.
    func waitAnswer(_ status: Int, of token: Int?, seconds told: Int64? = nil) -> Transmission {
        let seconds = told ?? Int64(random.below(random.isOne(in: 4) ? 3000 : 60))
        let retryAfter: String?
        lastTrouble = max(lastTrouble, time + max(60, min(seconds, 900) * 2) * 1_000_000_000)
        switch random.below(5) {
        case 0 where status == 429: retryAfter = nil
        case 1: retryAfter = Answers.httpDate(SimulatedServer.now(time) + .seconds(seconds))
        default: retryAfter = String(seconds)
        }
        if status == 429, let token, retryAfter != nil, home.isUsable, agent != nil {
            // A date is in whole seconds, as is the server's own.
            toldFamily = server.fates[token].family
            // What the keyring does not keep canopyd alone remembers, and a sign-out does not ask it.
            toldUntil =
                home.keyring.dropsWrites ? 0 : time + (min(seconds, 900) - 1) * 1_000_000_000
        }
        return plainAnswer(status, Answers.envelope(status), retryAfter: retryAfter)
    }

    func grantAnswer(_ token: Int, withoutAccessToken: Bool) -> Transmission {
        let isJWT = random.isOne(in: 2)
        let accessToken = Answers.accessToken(
            of: server.fates[token].family.number, issued: SimulatedServer.now(time),
            lifetime: server.lifetime, isJWT: isJWT)
        return plainAnswer(
            200,
            Answers.grant(
                refreshToken: token, accessToken: withoutAccessToken ? nil : accessToken,
                lifetime: isJWT && random.isOne(in: 4) ? nil : server.lifetime,
                isWrapped: !random.isOne(in: 4)))
    }

    /// The server's answer to a refresh, and the number of the successor that it carries.
    func answer(
        to outcome: RefreshOutcome, token: Int, cut: Bool, withoutAccessToken: Bool,
        isRepetition: Bool, keyringWritesAtOnce: Bool
    ) -> (Transmission, successor: Int?) {
        switch outcome {
        case .rotated(_, let id), .harmlessRetry(_, let id):
            let successor = Int(id.number)
            let whole = grantAnswer(successor, withoutAccessToken: withoutAccessToken)
            if cut { return (cutShort(whole), nil) }
            noteReceived(
                successor, of: token, isRepetition: isRepetition,
                hasAccessToken: !withoutAccessToken, keyringWritesAtOnce: keyringWritesAtOnce)
            return (whole, successor)
        case .familyRevoked, .identityRevoked, .refused(.unknown), .refused(.ended),
            .refused(.expired):
            saidDead.insert(server.fates[token].family.number)
            return (envelopeAnswer(401), nil)
        case .refused(.identityInactive):
            lastTrouble = max(lastTrouble, time + RotationTiming.refusedRetry.nanoseconds)
            return (envelopeAnswer(403), nil)
        }
    }

    private func noteReceived(
        _ successor: Int, of token: Int, isRepetition: Bool, hasAccessToken: Bool,
        keyringWritesAtOnce: Bool
    ) {
        figures.rotations += 1
        server.noteSuccessor(successor, .received)
        var hold = TimeSpan.zero
        if isRepetition { hold = RotationTiming.hold(lifetime: .seconds(server.lifetime)) }
        if !keyringWritesAtOnce { hold = max(hold, RotationTiming.lateStoreHold) }
        let time = time
        let bootNumber = bootNumber
        server.note(successor) {
            $0.receivedAt = time
            $0.receivedInBoot = bootNumber
            $0.hasAccessToken = hasAccessToken
            $0.notBefore = time + hold.nanoseconds
        }
    }

    private func cutShort(_ whole: Transmission) -> Transmission {
        guard random.isOne(in: 2), case .answered(let answer) = whole else {
            return .lost("the connection ended within the answer")
        }
        let length = random.below(answer.body.count)
        let body = answer.body.withBytes {
            Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<length]), in: Answers.memory)
        }
        return .answered(
            CanopyAnswer(
                status: answer.status, retryAfter: nil, date: answer.date, body: body))
    }

    /// Seconds until the spell is over.
    var spellLeft: Int64 {
        max(1, ((spell?.until ?? 0) - time) / 1_000_000_000)
    }

    /// The user ends the session in the server's list.
    func revoke(_ family: FamilyID) {
        _ = server.ledger.revokeSession(
            row: server.ledger.currentToken(of: family), of: server.identity)
    }
}
