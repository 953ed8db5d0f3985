internal import AgentCore
internal import LinuxSystem

/// The exchanges that the agent starts, and what follows from their ends.
extension Agent {
    /// Starts what is due for the profile, answers whoever can be, and tells what changed.
    func settle(_ profile: ServedProfile, at now: Moment) {
        wakeUpIsStale = true
        if profile.process == nil, !profile.isStarting, !isStopping {
            proceed(profile, at: now)
        }
        if isStopping { storeForGood(profile, at: now) }
        answerWaiters(of: profile, at: now)
        if isStopping, profile.process == nil, !profile.isStarting { dismiss(profile, at: now) }
        subscribers.tell(profile, at: now)
        notifications.saw(profile.name, profile.standing, at: now.boot)
    }

    /// Tells whoever still waits that nobody works for them any more.
    private func dismiss(_ profile: ServedProfile, at now: Moment) {
        for (client, reply) in profile.takeDismissed(at: now) {
            answer(client, reply, of: profile, at: now)
        }
        for request in profile.requests {
            deliver(request.client, Reply(Refusals.stopping(profile.name)))
        }
        profile.requests = []
    }

    private func proceed(_ profile: ServedProfile, at now: Moment) {
        while let request = profile.requests.first {
            switch readiness(of: request, profile, at: now) {
            case .ready(let job):
                profile.requests.removeFirst()
                profile.asker = request.client
                profile.question = request.kind.isQuestion ? request : nil
                return start(job, for: profile, at: now)
            case .refused(let problem):
                profile.requests.removeFirst()
                deliver(request.client, Reply(problem))
                continue
            case .needsToken:
                profile.machine.validityWanted(at: now)
            case .later:
                break
            }
            break
        }
        switch profile.machine.step(at: now.boot) {
        case .nothing: break
        case .load: load(at: now)
        case .rotate(let mayPresent):
            // A machine that goes to sleep now wakes up after the server's grace.
            guard !sleep.isPreparing else { return }
            rotate(profile, mayPresent: mayPresent, at: now)
        }
    }

    private enum Readiness {
        case ready(Job)
        case needsToken
        /// A repetition comes first that must not miss the server's grace.
        case later
        case refused(Problem)
    }

    /// A question to the server needs an access token; the others need nothing.
    private func readiness(
        of request: ServedProfile.Request, _ profile: ServedProfile, at now: Moment
    ) -> Readiness {
        // Somebody else may have signed in while it waited for its turn.
        if let problem = lateRefusal(of: request, profile) { return .refused(problem) }
        switch request.kind {
        case .signIn(let body):
            // It may take half a minute and fail: the repetition would miss the server's grace.
            guard !profile.machine.isRepeating else { return .later }
            var job = place.job(.signIn, profiles: [profile.name], settings)
            let defaults = settings.profiles[profile.name]
            job.secret = body
            job.baseURL = defaults?.url?.text
            job.publishableKey = defaults?.publishableKey
            return .ready(job)
        case .secondFactor(let body):
            guard !profile.machine.isRepeating else { return .later }
            var job = place.job(.secondFactor, profiles: [profile.name], settings)
            job.secret = body
            job.continuations = profile.challenges.map(\.challenge.continuation)
            return .ready(job)
        case .signOut(let isLocal):
            var job = place.job(.signOut, profiles: [profile.name], settings)
            job.isSlotKept = profile.slot.isKept
            job.slotKeptFor = profile.machine.slotKeptFor(at: now.boot)
            job.isSlotRewritten = profile.machine.isSlotRewritten
            job.isLocal = isLocal
            return .ready(job)
        case .identity, .sessions, .revokeSession:
            guard !profile.machine.isRepeating else { return .later }
            if let refused = request.refused,
                refused.generation == profile.machine.session?.position
            {
                return afterRefusal(refused.words, profile, at: now)
            }
            switch profile.machine.verdict(minimumValidity: nil, at: now) {
            case .wait:
                return .needsToken
            case .refused(let refusal):
                return .refused(Refusals.problem(refusal, profile.name, keptBy: keeper))
            case .token(let token):
                return .ready(question(request.kind, token, profile))
            }
        }
    }

    /// The server did not take the token in hand: the rotation that was forced for it comes first,
    /// and where it brought none there is nothing to ask with.
    private func afterRefusal(
        _ words: String, _ profile: ServedProfile, at now: Moment
    ) -> Readiness {
        switch profile.machine.phase {
        case .resting(let due) where due <= now.boot: .later
        case .unread, .exchanging: .later
        case .resting:
            .refused(Refusals.problem(Failure(.refused, words), profile.name, keptBy: keeper))
        case .paused(let pause):
            pause.until <= now.boot
                ? .later
                : .refused(
                    Refusals.problem(
                        pause.failure, profile.name, retryAfter: pause.until - now.boot,
                        keptBy: keeper))
        case .ended(let reason):
            .refused(Refusals.signInRequired(reason, profile.name))
        }
    }

    /// Has the token renewed that the server did not take, and the question asked again; false where
    /// that was done before, or may not be done now.
    private func asksAgain(
        _ outcome: ExchangeOutcome, _ profile: ServedProfile, at now: Moment
    ) -> Bool {
        guard case .tokenRefused(let words) = outcome,
            let present = profile.machine.session?.position,
            var request = profile.question
        else { return false }
        guard request.refused == nil else {
            profile.renewedInVain = present
            return false
        }
        guard profile.asker != nil, profile.renewedInVain != present,
            profile.machine.rotationForced(at: now)
        else { return false }
        request.refused = (present, words)
        profile.asker = nil
        profile.question = nil
        profile.requests.insert(request, at: 0)
        return true
    }

    private func question(
        _ kind: ServedProfile.Request.Kind, _ token: AccessToken, _ profile: ServedProfile
    ) -> Job {
        var job: Job
        switch kind {
        case .sessions:
            job = place.job(.sessions, profiles: [profile.name], settings)
        case .revokeSession(let id):
            job = place.job(.revokeSession, profiles: [profile.name], settings)
            job.sessionID = id
        case .identity, .signIn, .secondFactor, .signOut:
            job = place.job(.identity, profiles: [profile.name], settings)
        }
        job.secret = token.value
        job.baseURL = profile.machine.session?.baseURL
        return job
    }

    /// Makes the last attempt to store what the slot holds, and waits for a keyring that writes late: the
    /// slot may end with us.
    func storeForGood(_ profile: ServedProfile, at now: Moment) {
        guard profile.process == nil, !profile.isStarting, !profile.hasStoredForGood,
            profile.slot.isFull
        else { return }
        profile.hasStoredForGood = true
        rotate(profile, mayPresent: false, isLast: true, at: now)
    }

    /// Starts a rotation; with `mayPresent` false it only stores what the slot holds.
    private func rotate(
        _ profile: ServedProfile, mayPresent: Bool, isLast: Bool = false, at now: Moment
    ) {
        var job = place.job(.rotate, profiles: [profile.name], settings)
        job.isSlotKept = profile.slot.isKept
        job.known = profile.machine.session?.position
        job.mayPresent = mayPresent
        job.slotKeptFor = profile.machine.slotKeptFor(at: now.boot)
        job.isSlotRewritten = profile.machine.isSlotRewritten
        job.isLast = isLast
        start(job, for: profile, at: now)
    }

    /// Starts an exchange once the machine is held awake, if it can be.
    private func start(_ job: Job, for profile: ServedProfile, at now: Moment) {
        switch job.kind {
        case .rotate, .signIn, .secondFactor, .signOut:
            profile.isStarting = true
            sleep.hold { [weak self, weak profile] in
                guard let self, let profile else { return }
                profile.isStarting = false
                if isStopping, !job.isLast {
                    sleep.release()
                    answerAsker(of: profile, Refusals.stopping(profile.name))
                    return settle(profile, at: .now)
                }
                // It was asked for while the machine began to go to sleep. The last one presents nothing,
                // and at a shutdown there is no later.
                if sleep.isPreparing, job.kind == .rotate, !job.isLast { return sleep.release() }
                profile.holdsAwake = true
                let now = Moment.now
                spawn(job, for: profile, at: now)
                // A start that failed changes what callers are told.
                if profile.process == nil { settle(profile, at: now) }
            }
        case .load, .identity, .sessions, .revokeSession, .examine:
            spawn(job, for: profile, at: now)
        }
    }

    private func spawn(_ job: Job, for profile: ServedProfile, at now: Moment) {
        profile.machine.exchangeBegan(job.kind, at: now.boot)
        wakeUpIsStale = true
        do throws(SystemError) {
            profile.process = try ExchangeProcess(
                job, executable: place.executable, slot: profile.slot, loop: loop
            ) { [unowned self, unowned profile] news in
                heard(news, of: profile)
            }
        } catch {
            letSleep(profile)
            died("the exchange cannot be started: \(error)", profile, at: now)
        }
    }

    private func letSleep(_ profile: ServedProfile) {
        guard profile.holdsAwake else { return }
        profile.holdsAwake = false
        sleep.release()
    }

    private func heard(_ news: ExchangeProcess.News, of profile: ServedProfile) {
        let now = Moment.now
        switch news {
        case .report(.progress(let progress)):
            profile.machine.exchangeProgressed(progress, at: now)
        case .report(.keyring(let standing)):
            heard(standing)
        case .report(.memoryUnlocked(let reason)):
            MemoryWarning.give(of: "canopyd-exchange", reason)
        case .report(.searched):
            break  // Only a load searches.
        case .report(.ended(_, let outcome)):
            ended(outcome, of: profile, at: now)
        case .ended(let words):
            profile.process = nil
            letSleep(profile)
            died(words, profile, at: now)
        }
        if isGone(profile) {
            forget(profile, at: now)
        } else {
            settle(profile, at: now)
        }
    }

    /// The exchange is gone and has told no end, or was never started.
    func died(_ words: String, _ profile: ServedProfile, at now: Moment) {
        guard case .exchanging(let exchange) = profile.machine.phase else { return }
        Journal.write(.exchangeDied, (.profile, profile.name.text), (.error, words))
        profile.machine.exchangeDied(
            words, holdsSuccessor: profile.slot.isFull, at: now, draw: Agent.draw())
        answerAsker(
            of: profile, Refusals.problem(exchange.death(words), profile.name, keptBy: keeper))
        if case .paused = profile.machine.phase { noteAttempt(profile) }
    }

    /// The machine learns first; then whoever asked for the exchange, and everybody else.
    func ended(_ outcome: ExchangeOutcome, of profile: ServedProfile, at now: Moment) {
        guard case .exchanging(let exchange) = profile.machine.phase else { return }
        let before = profile.machine.session?.position
        let isSettling = profile.machine.isSettling
        profile.machine.exchangeEnded(
            outcome, holdsSuccessor: profile.slot.isFull, at: now, draw: Agent.draw())
        tally.observe(exchange.job, took: now.boot - exchange.began)
        keyring = keyring.after(outcome)
        switch profile.machine.phase {
        case .resting where isSettling: break  // It was no answer to who wants a rotation.
        case .unread, .resting, .exchanging, .paused, .ended:
            if exchange.job == .rotate || exchange.job == .load { noteAttempt(profile) }
        }
        if exchange.job == .rotate {
            let isNew = profile.machine.session?.position != before
            tally.count(
                outcome, of: profile.name, presented: exchange.isPresenting, isNew: isNew)
        }
        if let session = profile.machine.session {
            profile.account = session.account
            profile.lastGeneration = session.generation
        }
        if case .signInRequired(_, _, let account?) = outcome { profile.account = account }
        follow(outcome, of: exchange.job, profile, at: now)
        ExchangeLog.write(
            outcome, of: exchange.job, for: profile, before: before,
            took: now.boot - exchange.began, at: now)
        if asksAgain(outcome, profile, at: now) { return }
        answerAsker(of: profile, outcome, exchange.job, at: now)
    }

    /// A sign-in that waits for a second factor is kept, and forgotten once somebody has signed in.
    private func follow(
        _ outcome: ExchangeOutcome, of job: JobKind, _ profile: ServedProfile, at now: Moment
    ) {
        switch outcome {
        case .challenged(let challenge): profile.keep(challenge, at: now)
        case .session where job == .signIn || job == .secondFactor: profile.forgetChallenges()
        case .session, .tooEarly, .failed, .signInRequired, .signedOut, .rejected, .document,
            .tokenRefused:
            break
        }
    }

    private func noteAttempt(_ profile: ServedProfile) {
        profile.waiters.noteAttempt()
    }

    func answerWaiters(of profile: ServedProfile, at now: Moment) {
        for (client, reply) in profile.takeAnswered(at: now) {
            answer(client, reply, of: profile, at: now)
        }
    }

    private func answerAsker(
        of profile: ServedProfile, _ outcome: ExchangeOutcome, _ job: JobKind, at now: Moment
    ) {
        guard let client = profile.asker else { return }
        profile.asker = nil
        deliver(client, reply(to: outcome, job, profile, at: now))
    }

    private func answerAsker(of profile: ServedProfile, _ problem: Problem) {
        guard let client = profile.asker else { return }
        profile.asker = nil
        deliver(client, Reply(problem))
    }

    private func reply(
        to outcome: ExchangeOutcome, _ job: JobKind, _ profile: ServedProfile, at now: Moment
    ) -> Reply {
        switch outcome {
        case .session, .tooEarly:
            return .profile(profile.view(at: now))
        case .failed(let failure):
            return switch job {
            case .signOut: Reply(Refusals.signOutFailed(failure, profile.name, keptBy: keeper))
            case .revokeSession:
                Reply(Refusals.revocationFailed(failure, profile.name, keptBy: keeper))
            case .load, .rotate, .signIn, .secondFactor, .identity, .sessions, .examine:
                Reply(Refusals.problem(failure, profile.name, keptBy: keeper))
            }
        case .signInRequired(let reason, _, _):
            return Reply(Refusals.signInRequired(reason, profile.name))
        case .signedOut:
            return .done
        case .rejected(let rejection):
            return Reply(Refusals.problem(rejection, profile.name))
        case .challenged(let challenge):
            return .challenge(challenge)
        case .tokenRefused(let words):
            return Reply(Refusals.problem(Failure(.refused, words), profile.name, keptBy: keeper))
        case .document(let document):
            return document.count == 0
                ? .done : Reply(status: 200, body: .secret(document))
        }
    }
}
