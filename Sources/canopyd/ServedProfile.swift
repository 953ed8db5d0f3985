internal import AgentCore
internal import LinuxSystem

/// One profile as it is served: its machine, what runs for it, and who waits for it.
final class ServedProfile {
    let name: ProfileName
    let slot: SuccessorSlot
    let boot: BootID

    /// Who keeps the secrets of all profiles, as far as that was seen.
    let keeper: () -> KeyringOwner?

    /// No other profile's, those that are gone included.
    private let number: UInt32
    var machine: RotationMachine {
        didSet { prepared = nil }
    }

    /// What is shown while there is no session to show.
    var account: KnownSignIns.Account?

    /// The generation that is shown then; nil where nothing is known of any.
    var lastGeneration: Int64?

    /// The exchange that is at work on this profile; a load is shared.
    var process: ExchangeProcess?

    /// Whether an exchange is about to be started.
    var isStarting = false

    /// Whether the machine is held awake for the exchange that runs.
    var holdsAwake = false

    /// Whether the last attempt to store was made, of a canopyd that stops.
    var hasStoredForGood = false

    /// Who asked for the job that runs, if somebody did.
    var asker: ClientID?

    /// The question that it is the job for, if it is one; never a request that carries a secret, which
    /// has to be gone with its job.
    var question: Request?

    /// The generation whose token the server did not take either, though it was new: whoever asks each
    /// moment is not to have it renewed each time.
    var renewedInVain: Generation?
    var requests: [Request] = []

    /// Sign-ins that wait for a second factor, oldest first.
    private(set) var challenges: [(challenge: SignInChallenge, until: BootTime)] = []
    var waiters = Waiters()

    /// The last answer to a token request; nil once the machine has changed.
    private var prepared: Prepared?

    /// Who has had a token of the present generation.
    var grants = GrantLedger()

    /// The generation that those who are cleared have had a token of.
    private var clearedGeneration: Generation?
    private var clearances: UInt32 = 0

    /// What the log was told is wrong since it was last well; empty while it is.
    ///
    /// All of it: an outage whose cause goes back and forth is no new one each time.
    var complaints: Set<ExchangeLog.Complaint> = []

    /// What subscribers were told last.
    var published: (state: ProfileState, generation: Generation?, failure: Failure?)?

    /// A client's request that needs an exchange of its own.
    struct Request {
        let client: ClientID
        let kind: Kind
        let deadline: BootTime

        /// The generation whose access token the server did not take, and its words; nil while it has
        /// taken all that it was asked with.
        var refused: (generation: Generation, words: String)?

        enum Kind {
            case signIn(Secret)
            case secondFactor(Secret)
            case signOut(isLocal: Bool)
            case identity
            case sessions
            case revokeSession(String)

            /// Whether it is asked of the server with the access token, and changes nothing here.
            var isQuestion: Bool {
                switch self {
                case .identity, .sessions, .revokeSession: true
                case .signIn, .secondFactor, .signOut: false
                }
            }
        }

        /// Whether it uses or ends the session that there is.
        var usesSession: Bool {
            switch kind {
            case .signIn, .secondFactor: false
            case .signOut, .identity, .sessions, .revokeSession: true
            }
        }
    }

    init(
        _ name: ProfileName, number: UInt32, slot: SuccessorSlot, boot: BootID,
        mode: RotationMachine.Mode, account: KnownSignIns.Account?,
        keeper: @escaping () -> KeyringOwner?
    ) {
        self.name = name
        self.number = number
        self.slot = slot
        self.boot = boot
        self.account = account
        self.keeper = keeper
        machine = RotationMachine(boot: boot, mode: mode, holdsSuccessor: slot.isFull)
    }

    /// The earliest thing to be done for the profile; nil for nothing.
    ///
    /// What may not be started now is not due: a wake-up for it would come again and again.
    func wakeUp(mayLoad: Bool, mayRotate: Bool, at now: BootTime) -> BootTime? {
        var earliest: BootTime?
        func consider(_ time: BootTime?) {
            guard let time else { return }
            earliest = min(time, earliest ?? time)
        }
        if let process {
            consider(process.deadline)
        } else if !isStarting {
            switch machine.step(at: now) {
            case .nothing: consider(machine.wakeUp)
            case .load: if mayLoad { consider(machine.wakeUp) }
            case .rotate: if mayRotate { consider(machine.wakeUp) }
            }
        }
        consider(waiters.nextDeadline)
        consider(challenges.map(\.until).min())
        for request in requests { consider(request.deadline) }
        return earliest
    }

    /// Keeps a challenge until it expires or is answered.
    func keep(_ challenge: SignInChallenge, at now: Moment) {
        challenges.removeAll { $0.challenge.id == challenge.id }
        challenges.append((challenge, now.boot + max(.zero, challenge.expiresAt - now.wall)))
        challenges.removeFirst(max(0, challenges.count - Limits.openChallenges))
    }

    func forgetExpiredChallenges(at now: BootTime) {
        challenges.removeAll { $0.until <= now }
    }

    /// Somebody has signed in: whatever waited is over.
    func forgetChallenges() {
        challenges = []
    }

    func view(at now: Moment) -> ProfileView {
        let session = machine.session
        var reason: SignInReason?
        if case .ended(let ended) = machine.phase { reason = ended }
        var lastError: (code: Problem.Code, detail: String, at: WallTime)?
        if let (failure, at) = machine.lastFailure {
            lastError = (Refusals.code(of: failure), failure.detail, at)
        }
        return ProfileView(
            profile: name, state: machine.state(at: now), reason: reason,
            url: session?.baseURL ?? account?.baseURL,
            identity: session?.identity ?? account?.identity,
            generation: session?.generation ?? lastGeneration,
            expiresAt: machine.access?.life.expiresAt, refreshAt: refreshAt(now),
            lastRotationAt: session?.lastRotation?.moment.wall, lastError: lastError,
            signedInAt: session?.signedInAt ?? account?.signedInAt)
    }

    /// What the profile's state means for the desktop's notice.
    var standing: SignInNotice.Standing {
        switch machine.phase {
        case .ended(.signedOut): .settled
        case .ended(let reason): .needed(reason, email: account?.identity.email)
        case .unread, .resting, .exchanging, .paused:
            machine.session == nil ? .unknown : .settled
        }
    }

    /// When the daemon means to rotate, on the wall clock; nil for not by itself.
    func refreshAt(_ now: Moment) -> WallTime? {
        switch machine.phase {
        case .resting(let due): now.wall + (due - now.boot)
        case .paused(let pause):
            pause.until == .distantFuture ? nil : now.wall + (pause.until - now.boot)
        case .exchanging: machine.session == nil ? nil : now.wall
        case .unread, .ended: nil
        }
    }

    /// The present token as a reply.
    func tokenReply(_ token: AccessToken, asText: Bool, at now: Moment) -> Reply {
        asText ? .tokenText(token) : .token(view(of: token, at: now), in: .locked)
    }

    private func view(of token: AccessToken, at now: Moment) -> TokenView {
        TokenView(
            profile: name, token: token, remaining: token.life.remaining(at: now, boot: boot),
            refreshAt: comeBackAt(for: token, now),
            generation: machine.session?.generation ?? 0,
            identity: machine.session?.identity ?? Identity(id: "", email: ""))
    }

    /// When whoever has the token does best to ask again, and until when those keep it who keep tokens.
    ///
    /// Once there is another, and before this one is over, whenever the daemon rotates by itself.
    func comeBackAt(for token: AccessToken, _ now: Moment) -> WallTime {
        let end = token.life.expiresAt
        return refreshAt(now).map { min($0, end) } ?? end
    }

    // MARK: Answers from memory

    /// An answer down to its bytes: it is good for all who ask within the second that it names.
    private struct Prepared {
        let reply: Secret
        let offer: RotationMachine.Offer
        let seconds: Int64
    }

    // MARK: Clearance

    /// What a connection has that may have the token, and whose program the journal was told of:
    /// another number for each generation and policy, no other profile's, and never 0.
    func clearance() -> UInt64 {
        let generation = machine.session?.position
        if generation != clearedGeneration || clearances == 0 {
            clearedGeneration = generation
            clearances &+= 1
        }
        return UInt64(number) << 32 | UInt64(clearances)
    }

    /// Lets every connection be looked at again.
    func renewClearance() {
        clearances &+= 1
        prepared = nil
    }

    /// The clearance that goes with the token that ``preparedToken(minimumValidity:at:)`` gave last.
    private(set) var preparedClearance: UInt64 = 0

    /// The token object on a connection that is kept, head and all; nil if a request for
    /// `minimumValidity` is to be told something else.
    func preparedToken(minimumValidity: TimeSpan?, at now: Moment) -> Secret? {
        if let prepared {
            let left = prepared.offer.remaining(ifAtLeast: minimumValidity, at: now)
            if left?.wholeSeconds == prepared.seconds { return prepared.reply }
        }
        guard let offer = machine.offer, let token = machine.access,
            let left = offer.remaining(ifAtLeast: minimumValidity, at: now)
        else { return nil }
        let reply = Reply.token(view(of: token, at: now), in: .locked)
            .inOnePiece(in: .locked, date: now.wall)
        prepared = Prepared(reply: reply, offer: offer, seconds: left.wholeSeconds)
        preparedClearance = clearance()
        return reply
    }
}
