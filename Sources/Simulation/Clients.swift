internal import AgentCore

/// Programs and people that ask for something, at any time.
extension Episode {
    func comeClient() {
        nextClient =
            time
            + (random.isOne(in: 3)
                ? random.time(0, 2000)
                : Int64(random.draw() * 0.5e9 * Double(server.lifetime)))
        guard let agent, !isOff else { return }
        figures.clients += 1
        if !isCalm, act(agent) { return }
        let timeout = random.isOne(in: 8) ? 0 : random.time(100, 120_000)
        switch random.below(12) {
        case 0: agent.wantRotation(timeout: timeout)
        case 1...4: agent.wantToken(minimumValidity: nil, timeout: timeout)
        case 5 where !isCalm: agent.wantAnswer(revokes: false)
        default:
            let validity = random.draw() * 1.1 * Double(server.lifetime) * 1e9
            agent.wantToken(
                minimumValidity: TimeSpan(nanoseconds: Int64(validity)), timeout: timeout)
        }
    }

    /// The user signs in or out, or ends the session from its list.
    private func act(_ agent: SimulatedAgent) -> Bool {
        if case .ended = agent.machine.phase, random.isOne(in: 3) {
            agent.wantSignIn()
            return true
        }
        guard random.isOne(in: rates.userActs) else { return false }
        switch random.below(8) {
        case 0, 1: agent.wantSignOut(isLocal: false)
        case 2: agent.wantSignOut(isLocal: true)
        case 3: agent.wantAnswer(revokes: true)
        default: agent.wantSignIn()
        }
        return true
    }

    /// A client was given a token or a refusal.
    func answered(
        _ verdict: RotationMachine.Verdict, minimumValidity: TimeSpan?, deadline: Int64
    ) {
        answeredOtherwise(deadline)
        guard case .token(let token) = verdict else { return }
        figures.tokensServed += 1
        let left = Answers.expiry(of: token.value) - SimulatedServer.now(time)
        if left <= .zero { violate("I6: an expired access token was handed out") }
        if let minimumValidity, left + .seconds(1) < minimumValidity {
            violate("an access token was handed out with less validity than was asked for")
        }
    }

    func answeredOtherwise(_ deadline: Int64) {
        if time > max(deadline, lastResume) {
            violate("a client waited beyond its deadline")
        }
    }
}
