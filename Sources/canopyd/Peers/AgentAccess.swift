internal import AgentCore
internal import Glibc
internal import LinuxSystem

/// Who may use which profile's session, and what the journal is told of who did.
extension Agent {
    /// Why the request is refused by the access policy; nil if it is not, or the client is gone.
    func refusal(of route: Route, to client: ClientID) -> Problem? {
        guard !settings.policies.isEmpty else { return nil }
        if let name = route.usedSession { return refusal(of: name, to: client) }
        // Whoever may not use a session may not put another in its place either. Where there is none
        // anybody may sign in.
        guard let name = route.replacedSession, hasSession(name) else { return nil }
        return refusal(of: name, to: client)
    }

    private func hasSession(_ name: ProfileName) -> Bool {
        guard let profile = profiles[name], !profile.machine.isUnknown else { return false }
        return switch profile.machine.phase {
        case .ended: false
        case .unread, .exchanging, .paused, .resting: true
        }
    }

    private func refusal(of name: ProfileName, to client: ClientID) -> Problem? {
        guard let policy = settings.policies[name], let (caller, way) = caller(client) else {
            return nil
        }
        let peer = caller.peer
        guard let denial = policy.denial(of: peer, asking: way, file: Executable.File.init(at:))
        else { return nil }
        Journal.write(
            .denied, Agent.fields(peer, name) + [(.reason, denial.words(name))])
        return policy.problem(
            denial, of: peer, asking: way, for: name, file: configurationFile,
            reload: "kill -HUP \(getpid())")
    }

    /// Lets go of whoever waits for the profile and may not use it any more.
    func enforcePolicy(on profile: ServedProfile) {
        profile.renewClearance()
        let refused = profile.waiters.take { waiter in
            refusal(of: profile.name, to: waiter.client).map { Reply($0) }
        }
        var kept: [ServedProfile.Request] = []
        var problems: [(ClientID, Problem)] = []
        for request in profile.requests {
            if let problem = lateRefusal(of: request, profile) {
                problems.append((request.client, problem))
            } else {
                kept.append(request)
            }
        }
        profile.requests = kept
        for (client, reply) in refused { deliver(client, reply) }
        for (client, problem) in problems { deliver(client, Reply(problem)) }
    }

    /// Why a request that waits for its turn is refused by now; nil if it is not.
    func lateRefusal(of request: ServedProfile.Request, _ profile: ServedProfile) -> Problem? {
        guard request.usesSession || hasSession(profile.name) else { return nil }
        return refusal(of: profile.name, to: request.client)
    }

    // MARK: Who had a token

    /// Sends a reply to a client that waited.
    func answer(
        _ client: ClientID, _ reply: Reply, of profile: ServedProfile, at now: Moment
    ) {
        if reply.status == 200 { granted(profile, to: client, at: now) }
        deliver(client, reply)
    }

    /// Notes that the client is given the profile's token, and tells the journal if the program is
    /// new to this generation.
    func granted(_ profile: ServedProfile, to client: ClientID, at now: Moment) {
        guard let (caller, _) = caller(client) else { return }
        let clearance = profile.clearance()
        guard caller.clearance != clearance else { return }
        caller.clearance = clearance
        if settings.policies[profile.name] == nil {
            guard !recentCallers.contains(caller.process, clearance, at: now.boot) else { return }
            recentCallers.note(caller.process, clearance, at: now.boot)
        }
        guard let session = profile.machine.session, Journal.writes(.granted) else { return }
        let peer = caller.peer
        guard profile.grants.isFirst(GrantLedger.Program(peer), of: session.position) else {
            return
        }
        Journal.write(
            .granted,
            Agent.fields(peer, profile.name) + [(.generation, String(session.generation))])
    }

    /// Whether the process may have the token that lies ready, and the journal knows: the last was
    /// asked a moment ago.
    func isCleared(_ caller: Caller, for profile: ServedProfile, at now: Moment) -> Bool {
        if caller.clearance == profile.preparedClearance { return true }
        guard
            recentCallers.contains(caller.process, profile.preparedClearance, at: now.boot)
        else { return false }
        caller.clearance = profile.preparedClearance
        return true
    }

    private static func fields(
        _ peer: Peer, _ profile: ProfileName
    ) -> [(JournalField, String)] {
        [
            (.profile, profile.text), (.pid, String(peer.process)), (.uid, String(peer.user)),
            (.executable, peer.executableWords), (.unit, peer.units.value?.own ?? "none"),
        ]
    }
}
