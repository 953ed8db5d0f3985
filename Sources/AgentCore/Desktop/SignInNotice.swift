/// Decides when the desktop is told that a sign-in is needed, and when that is taken back.
///
/// One notice for all profiles: what ends several sign-ins at once (a keyring that was reset, a
/// restored home) is one thing to see to. A profile is named in it once its sign-in has been over for
/// ``grace``, and once only for each sign-in that ended; a profile that recovers, or is signed out by
/// the user, is taken out, and with the last one goes the notice. Nothing else is ever told: faults
/// that mend themselves are no business of the user's.
///
/// A value: events change it, ``step(at:)`` and ``wakeUp`` follow from it. Whoever owns it performs the
/// step and reports its end.
package struct SignInNotice: Sendable {
    /// How long a sign-in has to be over before anybody is told: a user who is about to sign in again,
    /// or a keyring that opens late, needs no notice.
    package static let grace = TimeSpan.seconds(120)

    /// What ends within this time of something else is told together with it.
    package static let gathering = TimeSpan.seconds(10)

    /// What a profile's state means here.
    package enum Standing: Equatable, Sendable {
        /// Its sign-in has ended, and not by the user; `email` is whose it was, where that is known.
        case needed(SignInReason, email: String?)
        /// There is a session, or the user has signed out.
        case settled
        /// Something is at work, or the keyring cannot be read: what was known before stands.
        case unknown
    }

    /// What is to be done now.
    package enum Step: Equatable, Sendable {
        case nothing
        /// Show the text, in the place of the notice that is shown already, if there is one.
        case show(SignInNoticeText, replacing: Shown?)
        case withdraw(Shown)
    }

    /// A notice on the desktop.
    package struct Shown: Equatable, Sendable {
        /// What the notification service calls it.
        package let id: UInt32
        /// The unique name of the service on the bus: to another, the id is another notice's.
        package let owner: String
        package let profiles: Set<ProfileName>

        package init(id: UInt32, owner: String, profiles: Set<ProfileName>) {
            self.id = id
            self.owner = owner
            self.profiles = profiles
        }
    }

    /// A sign-in that has ended.
    package struct Ended: Equatable, Sendable {
        /// When that was first seen.
        package let since: BootTime
        /// Whether the user was told.
        package fileprivate(set) var isTold: Bool
        fileprivate var reason: SignInReason?
        fileprivate var email: String?
        /// Whether it is known to be over at this moment.
        fileprivate var isCurrent = false
        /// Whether anything has been heard of the profile since canopyd started.
        fileprivate var isHeard = false

        package init(since: BootTime, isTold: Bool) {
            self.since = since
            self.isTold = isTold
        }

        /// When the user is to be told; nil for not, or not now.
        fileprivate var due: BootTime? {
            isCurrent && !isTold ? since + SignInNotice.grace : nil
        }
    }

    private enum Phase: Equatable {
        case ready
        /// The desktop was asked to show a notice; of these profiles it tells for the first time.
        case showing(Set<ProfileName>, new: Set<ProfileName>)
        /// There is no notification service, as far as is known; one that comes is asked then.
        case absent
    }

    package private(set) var ended: [ProfileName: Ended]
    package private(set) var shown: Shown?
    private var phase = Phase.absent

    /// Nothing has ended yet; or what an earlier canopyd of the same boot knew.
    package init(ended: [ProfileName: Ended] = [:], shown: Shown? = nil) {
        self.ended = ended
        self.shown = shown
    }

    // MARK: What follows from the state

    package func step(at now: BootTime) -> Step {
        guard isReady else { return .nothing }
        var due: Set<ProfileName> = []
        if let first = wakeUp, first <= now {
            let soon = now + SignInNotice.gathering
            due = Set(ended.filter { $0.value.due.map { $0 <= soon } ?? false }.keys)
        }
        guard let shown else {
            return due.isEmpty ? .nothing : .show(text(due), replacing: nil)
        }
        let profiles = shown.profiles.filter { ended[$0] != nil }.union(due)
        if profiles.isEmpty { return .withdraw(shown) }
        return profiles == shown.profiles
            ? .nothing : .show(text(profiles), replacing: shown)
    }

    /// When ``step(at:)`` will ask for something by itself; nil for never.
    package var wakeUp: BootTime? {
        guard isReady else { return nil }
        return ended.values.compactMap(\.due).min()
    }

    /// Whether something can be asked for at all: what is known from before a restart comes in profile
    /// by profile, and is one notice.
    private var isReady: Bool {
        phase == .ready && ended.values.allSatisfy(\.isHeard)
    }

    /// Whether it matters who offers notifications.
    package var needsService: Bool {
        if case .showing = phase { return true }
        return !ended.isEmpty || shown != nil
    }

    private func text(_ profiles: Set<ProfileName>) -> SignInNoticeText {
        SignInNoticeText(
            profiles.sorted().map { name in
                SignInNoticeText.Entry(
                    profile: name, reason: ended[name]?.reason, email: ended[name]?.email)
            })
    }

    // MARK: What changes the state

    /// A profile may have changed; whether it has, so that something may follow.
    @discardableResult
    package mutating func saw(
        _ profile: ProfileName, _ standing: Standing, at now: BootTime
    ) -> Bool {
        let known = ended[profile]
        switch standing {
        case .needed(let reason, let email):
            var sign = known ?? Ended(since: now, isTold: false)
            sign.reason = reason
            sign.email = email
            sign.isCurrent = true
            sign.isHeard = true
            ended[profile] = sign
        case .settled:
            ended[profile] = nil
        case .unknown:
            ended[profile]?.isCurrent = false
        }
        return ended[profile] != known
    }

    /// All has been read once, as far as it can be: of profiles that nothing was heard of, nothing is.
    package mutating func sawAll() {
        for profile in ended.keys { ended[profile]?.isHeard = true }
    }

    /// The notice of the step is on its way to the desktop: its profiles count as told from now on, for
    /// whether it is seen may never be known.
    package mutating func showing(_ text: SignInNoticeText) {
        let profiles = Set(text.entries.map(\.profile))
        let new = profiles.filter { ended[$0]?.isTold == false }
        for profile in new { ended[profile]?.isTold = true }
        phase = .showing(profiles, new: new)
    }

    /// The desktop shows it.
    package mutating func shows(id: UInt32, owner: String) {
        guard case .showing(let profiles, _) = phase else { return }
        shown = Shown(id: id, owner: owner, profiles: profiles)
        phase = .ready
    }

    /// The desktop refused, or never answered; it is not asked again.
    package mutating func refused() {
        guard case .showing(let profiles, _) = phase else { return }
        // What was to be replaced may still be there, to be withdrawn.
        shown = shown.map { Shown(id: $0.id, owner: $0.owner, profiles: profiles) }
        phase = .ready
    }

    /// There is nobody to show it, so nobody was told.
    package mutating func wasAbsent() {
        guard case .showing(_, let new) = phase else { return }
        for profile in new { ended[profile]?.isTold = false }
        shown = nil
        phase = .absent
    }

    /// What was shown is taken back.
    package mutating func withdrew() {
        shown = nil
    }

    /// The user has closed a notice of the service with this name, or it was closed for another reason.
    package mutating func closed(id: UInt32, owner: String) {
        guard shown?.id == id, shown?.owner == owner else { return }
        shown = nil
    }

    /// The notification service is the one with this unique name, or (nil) there is none.
    ///
    /// What another one showed is gone with it.
    package mutating func serviceIs(_ owner: String?) {
        if let owner, let shown, shown.owner != owner { self.shown = nil }
        switch phase {
        case .ready: if owner == nil { phase = .absent }
        case .absent: if owner != nil { phase = .ready }
        case .showing: break  // The answer, which comes in any case, tells.
        }
    }
}
