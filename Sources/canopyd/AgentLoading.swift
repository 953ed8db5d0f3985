internal import AgentCore
internal import LinuxSystem

/// Reading what the keyring holds, of profiles that the agent knows and of those that it does not.
extension Agent {
    /// Whether the profiles that only the keyring knows have been found.
    enum Search {
        /// The next load does it.
        case due
        /// The load that runs does it; something that happens meanwhile makes it due again.
        case running
        case done
        /// They could not be; what is not known may be there all the same.
        case failed(Failure, at: BootTime)

        var isDue: Bool {
            switch self {
            case .due: true
            case .running, .done, .failed: false
            }
        }
    }

    /// Reads every profile that has not been read, in one exchange, which also finds the profiles
    /// that only the keyring knows.
    func load(at now: Moment) {
        guard loading == nil, !isStopping else { return }
        let unread = profiles.values.filter {
            $0.process == nil && !$0.isStarting && $0.machine.step(at: now.boot) == .load
        }
        guard !unread.isEmpty || search.isDue else { return }
        for profile in unread { profile.machine.exchangeBegan(.load, at: now.boot) }
        wakeUpIsStale = true
        do throws(SystemError) {
            let process = try ExchangeProcess(
                place.job(.load, profiles: unread.map(\.name).sorted(), settings),
                executable: place.executable, slot: nil, loop: loop
            ) { [unowned self] news in
                heardLoading(news)
            }
            loading = process
            search = .running
            for profile in unread { profile.process = process }
        } catch {
            Journal.write(.exchangeUnstartable, (.error, "\(error)"))
            search = .running
            loadingEnded("\(error)", of: unread, at: now)
        }
    }

    private func heardLoading(_ news: ExchangeProcess.News) {
        let now = Moment.now
        switch news {
        case .report(.keyring(let standing)):
            heard(standing)
        case .report(.searched(let failure)):
            if case .running = search {
                search = failure.map { .failed($0, at: now.boot) } ?? .done
            }
        case .report(.memoryUnlocked(let reason)):
            MemoryWarning.give(of: "canopyd-exchange", reason)
        case .report(.progress):
            break  // A load spends nothing and repeats nothing.
        case .report(.ended(let name, let outcome)):
            loaded(name, outcome, at: now)
        case .ended(let words):
            let process = loading
            loading = nil
            wakeUpIsStale = true
            let shared = profiles.values.filter { $0.process === process }
            for profile in shared { profile.process = nil }
            loadingEnded(words, of: shared, at: now)
        }
    }

    private func loaded(_ name: ProfileName, _ outcome: ExchangeOutcome, at now: Moment) {
        if let profile = profiles[name] {
            // One that was signed in while the keyring was searched knows better.
            guard profile.process === loading else { return }
            ended(outcome, of: profile, at: now)
            settle(profile, at: now)
            return
        }
        switch outcome {
        case .signedOut: return
        case .session, .tooEarly, .failed, .signInRequired, .rejected, .challenged, .document,
            .tokenRefused:
            break
        }
        guard profiles.count < Limits.profiles, let found = served(name, account: nil) else {
            return
        }
        found.machine.exchangeBegan(.load, at: now.boot)
        found.process = loading
        ended(outcome, of: found, at: now)
        settle(found, at: now)
    }

    private func loadingEnded(_ words: String, of shared: [ServedProfile], at now: Moment) {
        switch search {
        case .running:
            search = .failed(
                Failure(
                    .keyringUnavailable, "the keyring could not be searched: \(words)",
                    remedy: .examination),
                at: now.boot)
        case .due, .done, .failed:
            break
        }
        // All of them first: settling one may begin the next load, of the others too.
        for profile in shared {
            if case .exchanging(let exchange) = profile.machine.phase, exchange.job == .load {
                died(words, profile, at: now)
            }
        }
        for profile in shared {
            if isGone(profile) {
                forget(profile, at: now)
            } else {
                settle(profile, at: now)
            }
        }
        notifications.sawAll(at: now.boot)
        let waiting = strangers
        strangers = []
        for (client, route, deadline) in waiting {
            let left = max(.zero, deadline - now.boot)
            if let reply = handle(route.shortened(to: left), body: nil, from: client) {
                deliver(client, reply)
            }
        }
        // What was read may be older than what happened.
        if search.isDue { keyringHinted(at: now) }
        load(at: now)
    }
}

extension Route {
    /// The same request with less time to wait.
    fileprivate func shortened(to timeout: TimeSpan) -> Route {
        switch self {
        case .token(let name, let validity, _, let asText):
            .token(name, minimumValidity: validity, timeout: timeout, asText: asText)
        case .refresh(let name, let generation, _):
            .refresh(name, ifGeneration: generation, timeout: timeout)
        case .profiles, .profile, .logIn, .multiFactor, .logOut, .identity, .sessions,
            .revokeSession, .events, .status, .metrics:
            self
        }
    }
}
