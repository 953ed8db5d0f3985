internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// One transaction: reads one job, does it from top to bottom, reports, and exits.
///
/// Descriptor 3 is the socket pair to canopyd, descriptor 4 the profile's successor slot.
@main
enum Exchange {
    private static let channelDescriptor: Int32 = 3
    private static let slotDescriptor: Int32 = 4

    static func main() {
        if ProgramArguments.all.contains("--version") {
            do throws(SystemError) {
                return try StandardOutput.write("canopyd-exchange \(Version.text)\n")
            } catch {
                StandardError.write("canopyd-exchange: \(error)")
                exit(1)
            }
        }
        Hardening.apply()
        // A session of its own: what stops canopyd's terminal or group does not stop a rotation.
        setsid()
        let memory = SecretMemory.locked
        let channel = Channel(descriptor: channelDescriptor, memory: memory)
        guard clinux_set_close_on_exec(channelDescriptor, 1) == 0,
            let job = channel.readJob()
        else {
            StandardError.write(
                "canopyd-exchange is started by canopyd, and does nothing by itself")
            exit(EX_USAGE)
        }
        if let failure = shortage() { return refuse(job, channel, failure) }
        run(job, channel, memory)
    }

    /// Why there is no use in beginning; nil if there is.
    private static func shortage() -> Failure? {
        do throws(SystemError) {
            return try DescriptorLimit.raise().map {
                Failure(
                    .exchangeFailed, "canopyd-exchange: \($0); \(DescriptorLimit.Shortage.remedy)")
            }
        } catch {
            return Failure(.exchangeFailed, "\(error)")
        }
    }

    private static func refuse(_ job: Job, _ channel: Channel, _ failure: Failure) {
        // An examination is nobody's, and a load may be of what is not known yet.
        let profiles = job.kind == .examine ? [.standard] : job.profiles
        for profile in profiles { channel.send(.ended(profile, .failed(failure))) }
        if job.kind == .load { channel.send(.searched(failure)) }
    }

    private static func run(_ job: Job, _ channel: Channel, _ memory: SecretMemory) {
        switch job.kind {
        case .load:
            let keyring = connect(job, channel)
            for profile in job.profiles {
                let world = RealWorld(
                    job, profile: profile, channel: channel, slot: nil, keyring: keyring,
                    memory: memory)
                channel.send(.ended(profile, Load(in: world).run()))
            }
            discover(job, channel, keyring, memory)
            tellOfMemory(channel)
        case .examine:
            let document = Examination(of: job, channel, memory).run()
            channel.send(.ended(.standard, .document(document)))
        case .rotate, .signIn, .secondFactor, .signOut, .identity, .sessions, .revokeSession:
            guard let profile = job.profiles.first else {
                preconditionFailure("a job without its profile was decoded")
            }
            let outcome = outcome(job, profile, channel, memory)
            tellOfMemory(channel)
            channel.send(.ended(profile, outcome))
        }
    }

    /// Tells canopyd, which warns of it, if what this exchange held may have got to disk.
    private static func tellOfMemory(_ channel: Channel) {
        guard let refusal = LockedMemory.refusal else { return }
        channel.send(.memoryUnlocked("\(refusal)"))
    }

    /// Profiles that the keyring knows and the state directory does not: it was lost, or the
    /// keyring came from elsewhere.
    ///
    /// They are reported, so that a user is told why.
    private static func discover(
        _ job: Job, _ channel: Channel, _ keyring: Reading<SecretServiceConnection>,
        _ memory: SecretMemory
    ) {
        let connection: SecretServiceConnection
        switch keyring {
        case .found(let made): connection = made
        case .failed(let failure): return channel.send(.searched(failure))
        }
        let (profiles, failure) = SecretServiceStore.profiles(connection)
        for profile in profiles where !job.profiles.contains(profile) {
            let world = RealWorld(
                job, profile: profile, channel: channel, slot: nil, keyring: keyring,
                memory: memory)
            channel.send(.ended(profile, Load(in: world).run()))
        }
        channel.send(.searched(failure))
    }

    private static func outcome(
        _ job: Job, _ profile: ProfileName, _ channel: Channel, _ memory: SecretMemory
    ) -> ExchangeOutcome {
        switch job.kind {
        case .rotate:
            let world = world(job, profile, channel, nil, memory)
            return Rotation(
                in: world, known: job.known, mayPresent: job.mayPresent,
                slotKeptFor: job.slotKeptFor, isSlotRewritten: job.isSlotRewritten,
                isLast: job.isLast
            ).run()
        case .signOut:
            let world = world(job, profile, channel, nil, memory)
            return SignOut(
                in: world, isLocal: job.isLocal, slotKeptFor: job.slotKeptFor,
                isSlotRewritten: job.isSlotRewritten
            ).run()
        case .signIn:
            return signIn(job, profile, channel, memory)
        case .secondFactor:
            return secondFactor(job, profile, channel, memory)
        case .identity, .sessions, .revokeSession:
            return query(job, memory)
        case .load, .examine:
            preconditionFailure("a load and an examination are not one profile's")
        }
    }

    private static func world(
        _ job: Job, _ profile: ProfileName, _ channel: Channel, _ proof: SignInProof?,
        _ memory: SecretMemory
    ) -> RealWorld {
        RealWorld(
            job, profile: profile, channel: channel,
            slot: MemoryFile(owning: slotDescriptor), keyring: connect(job, channel),
            proof: proof, memory: memory)
    }

    /// Connects to the keyring, and tells canopyd how it is; `isAnew` in place of a connection that
    /// has failed.
    static func connect(
        _ job: Job, _ channel: Channel, isAnew: Bool = false
    ) -> Reading<SecretServiceConnection> {
        if !isAnew {
            Unresponsive.prepare(channel, for: job.profiles)
            if job.kind == .rotate {
                Unresponsive.tellOfSlowness(
                    as: Failure(.keyringUnavailable, "the keyring takes its time to answer"))
            }
        }
        let keyring = SecretServiceConnection.open()
        switch keyring {
        case .found(let connection):
            channel.send(.keyring(KeyringStanding(.ok, owner: connection.owner)))
            let owner = connection.owner
            connection.onLocked = { path in
                channel.send(.keyring(KeyringStanding(.locked, owner: owner, collection: path)))
            }
        case .failed:
            channel.send(.keyring(KeyringStanding(.unavailable, owner: nil)))
        }
        return keyring
    }

    private static func signIn(
        _ job: Job, _ profile: ProfileName, _ channel: Channel, _ memory: SecretMemory
    ) -> ExchangeOutcome {
        guard let body = job.secret else { preconditionFailure("a sign-in without a body") }
        let credentials: Credentials
        let server: BaseURL
        do throws(Credentials.Malformed) {
            credentials = try Credentials(parsing: body, in: memory)
        } catch {
            return .rejected(Rejection(.malformed, "\(error)"))
        }
        do throws(BaseURL.Malformed) {
            server = try BaseURL(credentials.baseURL ?? job.baseURL ?? BaseURL.standard)
        } catch {
            return .rejected(Rejection(.malformed, "\(error)"))
        }
        guard let key = credentials.publishableKey ?? job.publishableKey, !key.isEmpty else {
            return .rejected(
                Rejection(
                    .malformed,
                    "no publishable key: neither the request nor the configuration has one"))
        }
        return signIn(
            world(job, profile, channel, .password(credentials), memory), at: server.text,
            key: key)
    }

    private static func secondFactor(
        _ job: Job, _ profile: ProfileName, _ channel: Channel, _ memory: SecretMemory
    ) -> ExchangeOutcome {
        guard let body = job.secret else {
            preconditionFailure("a second factor without a body")
        }
        let answer: SecondFactorAnswer
        do throws(SecondFactorAnswer.Malformed) {
            answer = try SecondFactorAnswer(parsing: body, in: memory)
        } catch {
            return .rejected(Rejection(.malformed, "\(error)"))
        }
        let open = job.continuations.compactMap { SignInContinuation($0, in: memory) }
        guard let continuation = open.first(where: { $0.id == answer.challenge }) else {
            return .rejected(
                Rejection(
                    .malformed,
                    "no sign-in of this profile waits under that challenge: it has expired, or was "
                        + "answered; sign in again"))
        }
        switch answer.step {
        case .sendEmail:
            return sendEmail(continuation, job, memory)
        case .prove(let factor, let code):
            return signIn(
                world(
                    job, profile, channel,
                    .secondFactor(factor, code: code, challenge: continuation.token), memory),
                at: continuation.baseURL, key: continuation.publishableKey)
        }
    }

    private static func sendEmail(
        _ continuation: SignInContinuation, _ job: Job, _ memory: SecretMemory
    ) -> ExchangeOutcome {
        let server: BaseURL
        do throws(BaseURL.Malformed) {
            server = try BaseURL(continuation.baseURL)
        } catch {
            preconditionFailure("a sign-in began at a server without a URL")
        }
        let client = CanopyClient(caFile: job.caFile, proxy: job.proxy, memory: memory)
        let request = CanopyRequest.sendEmailCode(
            challenge: continuation.token, at: server, memory: memory)
        switch client.send(request) {
        case .notSent(let detail): return .failed(Failure(.notPresented, detail))
        case .lost(let detail): return .failed(Failure(.noAnswer, detail))
        case .answered(let answer):
            guard let failure = Queries.failure(answer) else {
                return .challenged(continuation.challenge(in: memory))
            }
            return failure.kind == .refused
                ? .rejected(Rejection(.credentials, failure.detail)) : .failed(failure)
        }
    }

    private static func signIn(
        _ world: RealWorld, at url: String, key: String
    ) -> ExchangeOutcome {
        let id = SignInID(high: Randomness.word(), low: Randomness.word())
        return SignIn(in: world, id: id, baseURL: url, publishableKey: key).run()
    }

    private static func query(_ job: Job, _ memory: SecretMemory) -> ExchangeOutcome {
        guard let accessToken = job.secret, let url = job.baseURL else {
            preconditionFailure("a question without a token or a server")
        }
        let server: BaseURL
        do throws(BaseURL.Malformed) {
            server = try BaseURL(url)
        } catch {
            return .failed(Failure(.notPresented, "\(error)"))
        }
        let request: CanopyRequest
        let meaning: (CanopyAnswer, SecretMemory) -> ExchangeOutcome
        switch job.kind {
        case .identity:
            request = .identity(accessToken, at: server)
            meaning = Queries.identity
        case .sessions:
            request = .sessions(accessToken, at: server)
            meaning = Queries.sessions
        case .revokeSession:
            request = .revokeSession(job.sessionID ?? "", accessToken, at: server)
            meaning = Queries.nothing
        case .load, .signIn, .secondFactor, .rotate, .signOut, .examine:
            preconditionFailure("not a question")
        }
        let client = CanopyClient(caFile: job.caFile, proxy: job.proxy, memory: memory)
        switch client.send(request) {
        case .notSent(let detail): return .failed(Failure(.notPresented, detail))
        case .lost(let detail): return .failed(Failure(.noAnswer, detail))
        case .answered(let answer): return meaning(answer, memory)
        }
    }
}
