internal import AgentCore
internal import LinuxSystem

/// What clients ask of the agent.
extension Agent {
    /// How long a request that needs an exchange of its own may wait for its turn.
    private static let requestPatience = TimeSpan.seconds(55)

    /// The bytes of the answer to a token request that can be answered from memory.
    func preparedToken(
        _ wish: RecentRequests.Wish, for caller: Caller, at now: Moment
    ) -> Secret? {
        guard let profile = profile(askedFor: wish.profile),
            let reply = profile.preparedToken(minimumValidity: wish.minimumValidity, at: now),
            isCleared(caller, for: profile, at: now)
        else { return nil }
        return reply
    }

    /// Answers a request; nil if the answer comes later, through ``deliver``.
    func handle(_ route: Route, body: Secret?, from client: ClientID) -> Reply? {
        let now = Moment.now
        if let problem = refusal(of: route, to: client) { return Reply(problem) }
        switch route {
        case .token(let name, let validity, let timeout, let asText):
            guard let profile = known(name) else {
                return unknown(name, route, timeout, client, now)
            }
            return token(profile, validity, timeout, asText, client, now)
        case .profiles:
            return .profiles(views(at: now))
        case .profile(let name):
            guard let profile = known(name) else {
                return unknown(
                    name, route, .seconds(Int64(Limits.requestTimeoutSeconds)), client, now)
            }
            return .profile(profile.view(at: now))
        case .refresh(let name, let generation, let timeout):
            guard let profile = known(name) else {
                return unknown(name, route, timeout, client, now)
            }
            return refresh(profile, generation, timeout, client, now)
        case .logIn(let name):
            guard let body else {
                return Reply(Problem(.badRequest, "the request has no body", profile: name))
            }
            guard profiles[name] != nil || profiles.count < Limits.profiles else {
                return Reply(
                    Problem(
                        .badRequest, "there are \(Limits.profiles) profiles already",
                        profile: name))
            }
            guard let profile = served(name, account: nil, isNew: true) else {
                return Reply(
                    Refusals.problem(
                        Failure(.storageFailed, "the successor slot cannot be made"), name,
                        keptBy: keeper))
            }
            return enqueue(.signIn(body), profile, client, now)
        case .multiFactor(let name):
            guard let body else {
                return Reply(Problem(.badRequest, "the request has no body", profile: name))
            }
            guard let profile = profiles[name], !profile.challenges.isEmpty else {
                return Reply(Refusals.noChallenge(name))
            }
            return enqueue(.secondFactor(body), profile, client, now)
        case .logOut(let name, let isLocal):
            return request(.signOut(isLocal: isLocal), name, route, client, now)
        case .identity(let name):
            return request(.identity, name, route, client, now)
        case .sessions(let name):
            return request(.sessions, name, route, client, now)
        case .revokeSession(let name, let id):
            return request(.revokeSession(id), name, route, client, now)
        case .events(let name):
            guard let name, known(name) == nil else { return .events }
            return Reply(Refusals.unknownProfile(name))
        case .status:
            return .status(status(at: now))
        case .metrics:
            return .metrics(metrics(at: now))
        }
    }

    /// What is said of the daemon as a whole.
    func status(at now: Moment) -> StatusView {
        StatusView(
            version: Version.text, startedAt: startedAt, keyring: (keyring.state, keyring.owner),
            connections: connections(), profiles: views(at: now))
    }

    private func metrics(at now: Moment) -> MetricsView {
        MetricsView(
            version: Version.text,
            profiles: views(at: now).map { ($0.profile, $0.state, $0.expiresAt) },
            rotations: tally.rotationsByOutcome, exchanges: tally.durationsByJob,
            requests: statistics(), connections: connections(), keyring: keyring.state)
    }

    /// How many profiles are in each state, and one of them: asked for at every change, of which a
    /// thousand profiles make thousands, so that nothing is sorted or written.
    func census(at now: Moment) -> [ProfileState: (count: Int, one: ProfileName)] {
        var census: [ProfileState: (count: Int, one: ProfileName)] = [:]
        for profile in profiles.values where !profile.machine.isUnknown {
            census[profile.machine.state(at: now), default: (0, profile.name)].count += 1
        }
        return census
    }

    func views(at now: Moment) -> [ProfileView] {
        profiles.values.filter { !$0.machine.isUnknown }.sorted { $0.name < $1.name }
            .map { $0.view(at: now) }
    }

    /// A client is gone: whatever it waited for, nobody is to be told.
    func clientGone(_ client: ClientID) {
        if !strangers.isEmpty { strangers.removeAll { $0.client == client } }
        subscribers.remove(client)
        for profile in profiles.values {
            profile.waiters.remove(client)
            if !profile.requests.isEmpty { profile.requests.removeAll { $0.client == client } }
            if profile.asker == client { profile.asker = nil }
        }
        wakeUpIsStale = true
    }

    /// Begins to tell a client of changes; returns the present states as its first events.
    func subscribe(_ client: ClientID, profile name: ProfileName?) -> [UInt8] {
        let now = Moment.now
        return subscribers.add(client, wishing: name) { views(at: now) }
    }

    /// Why there are no events of the profile (nil stands for all of them); nil if there are.
    func refusal(ofEventsOf name: ProfileName?) -> Problem? {
        guard let name, known(name) == nil else { return nil }
        return Refusals.unknownProfile(name)
    }

    private func token(
        _ profile: ServedProfile, _ validity: TimeSpan?, _ timeout: TimeSpan, _ asText: Bool,
        _ client: ClientID, _ now: Moment
    ) -> Reply? {
        urge(profile, at: now)
        if let reply = profile.currentToken(minimumValidity: validity, asText: asText, at: now) {
            if reply.status == 200 { granted(profile, to: client, at: now) }
            return reply
        }
        return wait(
            .token(minimumValidity: validity, asText: asText), profile, timeout, client, now)
    }

    private func refresh(
        _ profile: ServedProfile, _ generation: Int64?, _ timeout: TimeSpan, _ client: ClientID,
        _ now: Moment
    ) -> Reply? {
        let present = profile.machine.session?.position
        if let generation, let present, present.number != generation {
            return token(profile, nil, timeout, false, client, now)
        }
        guard profile.machine.rotationForced(at: now) else {
            return unforced(profile, timeout, client, now)
        }
        return wait(
            .rotation(of: present, onlyIf: generation), profile, timeout, client, now)
    }

    /// What a forced rotation is told that may not begin: what holds it up, or the present token.
    private func unforced(
        _ profile: ServedProfile, _ timeout: TimeSpan, _ client: ClientID, _ now: Moment
    ) -> Reply? {
        if case .paused(let pause) = profile.machine.phase {
            return Reply(
                Refusals.problem(
                    pause.failure, profile.name, retryAfter: pause.until - now.boot,
                    keptBy: keeper))
        }
        return token(profile, nil, timeout, false, client, now)
    }

    private func wait(
        _ kind: ServedProfile.Waiter.Kind, _ profile: ServedProfile, _ timeout: TimeSpan,
        _ client: ClientID, _ now: Moment
    ) -> Reply? {
        profile.waiters.add(
            ServedProfile.Waiter(client: client, kind: kind, deadline: now.boot + timeout))
        // What is at work answers them all; looking at each whenever one comes would be quadratic.
        guard profile.process == nil, !profile.isStarting else {
            wakeUpIsStale = true
            return nil
        }
        settle(profile, at: now)
        return nil
    }

    /// The profile, if something is signed in under the name.
    private func known(_ name: ProfileName) -> ServedProfile? {
        guard let profile = profiles[name], !profile.machine.isUnknown else { return nil }
        return profile
    }

    /// A profile that is not known may yet be found in the keyring.
    private func unknown(
        _ name: ProfileName, _ route: Route, _ timeout: TimeSpan, _ client: ClientID, _ now: Moment
    ) -> Reply? {
        switch search {
        case .done:
            return Reply(Refusals.unknownProfile(name))
        case .failed(let failure, let at):
            guard now.boot - at >= BackOff.start, !isStopping else {
                return Reply(Refusals.problem(failure, name, keptBy: keeper))
            }
            search = .due
        case .due, .running:
            break
        }
        strangers.append((client, route, now.boot + timeout))
        wakeUpIsStale = true
        load(at: now)
        return nil
    }

    private func request(
        _ kind: ServedProfile.Request.Kind, _ name: ProfileName, _ route: Route,
        _ client: ClientID, _ now: Moment
    ) -> Reply? {
        guard let profile = known(name) else {
            return unknown(name, route, Agent.requestPatience, client, now)
        }
        return enqueue(kind, profile, client, now)
    }

    private func enqueue(
        _ kind: ServedProfile.Request.Kind, _ profile: ServedProfile, _ client: ClientID,
        _ now: Moment
    ) -> Reply? {
        guard profile.requests.count < Limits.requestsPerProfile else {
            return Reply(
                Problem(
                    .tooManyConnections,
                    "\(profile.requests.count) requests of this profile wait for their turn with "
                        + "the server already", profile: profile.name))
        }
        profile.requests.append(
            ServedProfile.Request(
                client: client, kind: kind, deadline: now.boot + Agent.requestPatience))
        settle(profile, at: now)
        return nil
    }
}
