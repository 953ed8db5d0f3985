internal import AgentCore
internal import SandboxRules

/// The requests of one exchange, what the network does to them, and what the server says.
extension SimulatedExchange {
    func present(_ refreshToken: Secret, to baseURL: String) throws(Killed) -> Transmission {
        requireLock("present")
        let token = Answers.number(refreshToken)
        checkPresenting(token)
        episode.figures.presentations += 1
        try step(taking: 0)
        if episode.networkDownUntil > episode.time {
            try step(taking: episode.random.time(5, 10_000))
            return .notSent("no route")
        }
        let fault = episode.answerFault()
        if home === episode.home { episode.isPresenting = process }
        defer {
            if home === episode.home { episode.isPresenting = nil }
            let time = episode.time
            episode.server.note(token) { $0.knownLostAt = time }
        }
        let wasSent = episode.noteSent(token)
        let transmission = try transmit(token, fault, isRepetition: wasSent)
        if fault != nil { noteAttempt(with: token, transmission) }
        return transmission
    }

    private func checkPresenting(_ token: Int) {
        if episode.isPresenting != nil, home === episode.home {
            episode.violate("I1: two requests of one sign-in were in flight")
        }
        if !process.isPresenting {
            episode.violate("a token was presented before canopyd was told")
        }
        guard let signIn = home.keyring.live?.header.signIn else {
            if !episode.isDisturbed {
                episode.violate("I2: a token was presented that is not in the keyring")
            }
            return
        }
        episode.checkPresenting(token, of: signIn, from: home, by: process)
    }

    /// Whether the quick repetitions are used up, of which each cause has its own.
    ///
    /// Counted as those of a later exchange are; that the first one has more is a test of its own.
    private func noteAttempt(with token: Int, _ transmission: Transmission) {
        let now = now()
        let kind: Failure.Kind
        let repetitions: Int
        switch RefreshMeaning(
            transmission, sent: Stamp(now, boot: boot), now: now, memory: memory)
        {
        case .ambiguous(let failure):
            kind = failure.kind
            repetitions = RotationTiming.laterRetries.count
        case .unavailable:
            kind = .throttled
            repetitions = 1
        case .toldToWait:
            // What follows is the wait that was told, or backed off.
            kind = .throttled
            repetitions = 0
        case .rotated, .verdict, .notNative, .refused, .notPresented:
            return
        }
        process.failures[kind, default: 0] += 1
        var count = process.failures[kind] ?? 0
        if kind == .serverError {
            // The repetition after a 503 that told to wait is one of those after a server's errors.
            count += process.failures[.throttled] ?? 0
        }
        let isLast = count > repetitions
        episode.server.note(token) { $0.wasLastRetry = isLast }
    }

    private func transmit(
        _ token: Int, _ fault: Fault?, isRepetition: Bool
    ) throws(Killed) -> Transmission {
        let episode = episode
        var isProcessed = false
        do throws(Killed) {
            try step(taking: episode.latency())
            isProcessed = true
            if let fault, let answer = try unprocessed(fault, of: token) { return answer }
            let outcome = episode.present(token, isLate: false)
            try step(taking: episode.latency())
            switch fault {
            case .answerLost:
                try step(taking: episode.silence())
                return .lost("reset")
            case .serverErrorAfterRotation:
                return episode.serverErrorAnswer()
            case .unavailable:
                return episode.waitAnswer(503, of: token)
            default:
                break
            }
            let (transmission, successor) = episode.answer(
                to: outcome, token: token, cut: fault == .answerCut,
                withoutAccessToken: fault == .answerWithoutAccessToken,
                isRepetition: isRepetition, keyringWritesAtOnce: keyringWritesAtOnce)
            if let successor {
                process.received = successor
                process.isUnslotted = true
                if home === episode.home { episode.treasure = successor }
            }
            return transmission
        } catch {
            // Killed with its request on the way: a proxy may still deliver it.
            if !isProcessed, episode.isOne(in: 2) { episode.queueRequest(token) }
            throw error
        }
    }

    /// What comes back for a request that the server has never seen; nil if it has.
    ///
    /// `token` is that of a refresh.
    private func unprocessed(
        _ fault: Fault, of token: Int? = nil
    ) throws(Killed) -> Transmission? {
        switch fault {
        case .requestLost:
            try step(taking: episode.silence())
            return .lost("no answer")
        case .requestQueued:
            if let token { episode.queueRequest(token) }
            try step(taking: episode.silence())
            return .lost("no answer")
        case .portal, .portalSpell:
            return episode.portalAnswer()
        case .serverError, .outageSpell:
            return episode.serverErrorAnswer()
        case .throttled:
            return episode.waitAnswer(429, of: token)
        case .throttlingSpell:
            return episode.waitAnswer(429, of: token, seconds: episode.spellLeft)
        case .unavailable where episode.isOne(in: 2):
            return episode.waitAnswer(503, of: token)
        default:
            return nil
        }
    }

    func signIn(at baseURL: String, publishableKey: String) throws(Killed) -> Transmission {
        requireLock("signIn")
        if episode.networkDownUntil > episode.time {
            try step(taking: episode.random.time(5, 10_000))
            return .notSent("no route")
        }
        let fault = episode.answerFault()
        try step(taking: episode.latency())
        if let fault, let answer = try unprocessed(fault) { return answer }
        if let wait = episode.server.signInWait(isOfCopy: home !== episode.home, at: episode.time) {
            return episode.waitAnswer(429, of: nil, seconds: Int64(wait.seconds.rounded(.up)))
        }
        let token = episode.server.signIn(isOfCopy: home !== episode.home, at: episode.time)
        try step(taking: episode.latency())
        guard let token else { return episode.envelopeAnswer(403) }
        switch fault {
        case .answerLost: return .lost("reset")
        case .serverErrorAfterRotation: return episode.serverErrorAnswer()
        default: return episode.grantAnswer(token, withoutAccessToken: false)
        }
    }

    func signOut(
        _ accessToken: Secret, naming refreshToken: Secret?, at baseURL: String
    ) throws(Killed) -> Transmission {
        if let refreshToken, home !== episode.home,
            !episode.server.fates[Answers.number(refreshToken)].isOfCopy
        {
            episode.violate("I3: a copied home named a refresh token to the server")
        }
        return try authorized(accessToken) { family in
            guard refreshToken == nil || !episode.server.isStrict else {
                return episode.envelopeAnswer(400)
            }
            episode.server.ledger.logOut(family)
            return episode.plainAnswer(204, "")
        }
    }

    /// A client's question, or its order to end the session.
    func ask(
        with accessToken: Secret, toEnd isRevoking: Bool
    ) throws(Killed) -> ExchangeOutcome {
        let transmission = try authorized(accessToken) { family in
            if isRevoking { episode.revoke(family) }
            return episode.plainAnswer(isRevoking ? 204 : 200, "{\"sessions\":[]}")
        }
        switch transmission {
        case .notSent(let detail): return .failed(Failure(.notPresented, detail))
        case .lost(let detail): return .failed(Failure(.noAnswer, detail))
        case .answered(let answer) where answer.status < 300: return .document(answer.body)
        case .answered: return .failed(Failure(.refused, "no"))
        }
    }

    /// A request with an access token; `act` is what the server does if it accepts that.
    private func authorized(
        _ accessToken: Secret, _ act: (SimulatedServer.Family) -> Transmission
    ) throws(Killed) -> Transmission {
        if episode.networkDownUntil > episode.time {
            try step(taking: episode.random.time(5, 10_000))
            return .notSent("no route")
        }
        let fault = episode.answerFault()
        try step(taking: episode.latency())
        if let fault, let answer = try unprocessed(fault) { return answer }
        let family = episode.server.family(of: accessToken, at: episode.time)
        guard let family, !episode.isFault(.accessTokenRefused, in: episode.rates.refusedAccess)
        else {
            try step(taking: episode.latency())
            return episode.envelopeAnswer(401)
        }
        let answer = act(family)
        try step(taking: episode.latency())
        switch fault {
        case .answerLost: return .lost("reset")
        case .serverErrorAfterRotation: return episode.serverErrorAnswer()
        default: return answer
        }
    }
}
