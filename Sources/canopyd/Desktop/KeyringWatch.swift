internal import AgentCore
internal import LinuxSystem

/// Notices when the Secret Service comes, goes, is locked and unlocked.
///
/// By signal where there is one, and what is heard is a hint: KWallet and plaintext keyrings call
/// themselves locked while they are usable, so only reading the keyring tells. gnome-keyring that is
/// unlocked through its control socket emits no signal, so while something waits for that, and only
/// then, a property of what was found locked is read, each second and then backing off to five.
final class KeyringWatch {
    /// The keyring may be another than it was: worth reading it again.
    var onHint: () -> Void = {}

    /// Nobody keeps the secrets any more.
    var onLoss: (Failure) -> Void = { _ in }

    /// ``wakeUp`` has moved.
    var onPlan: () -> Void = {}

    /// ``bus`` is another one now.
    var onConnect: () -> Void = {}

    /// What something waits for.
    enum Need {
        case nothing
        /// A locked keyring to be unlocked.
        case unlock
        /// A keyring that is not there, or of no use, to come.
        case arrival
    }

    private static let service = "org.freedesktop.secrets"

    /// Between two looks at first: an unlocking is to be noticed within two seconds.
    private static let shortestPause = TimeSpan.seconds(1)

    /// Between two looks in the end: a machine that stays locked overnight is not to be kept awake.
    private static let longestPause = TimeSpan.seconds(5)

    /// The looks before they get rarer: whoever logs in, or was locked out by an upgrade, unlocks
    /// within these two minutes.
    private static let eagerLooks = 120

    /// Between two looks that clients ask for by asking for tokens.
    private static let urgedPause = TimeSpan.milliseconds(200)

    /// Hints that are followed at once; some wallets close behind each user, so that every look at
    /// one makes the next hint.
    private static let freeHints = 8

    /// Between two hints that are followed, once there were more than ``freeHints``; also the quiet
    /// after which they are free again.
    private static let hintPause = TimeSpan.seconds(30)

    /// The session bus; nil if there is none.
    private(set) var bus: Bus?

    private let loop: EventLoop
    private var need = Need.nothing
    private var lockedCollections: Set<String> = []
    private var nextLook: BootTime?
    private var lastLook: BootTime?
    private var looks = 0
    private var pause = KeyringWatch.shortestPause
    private var hints = 0
    private var lastHint: BootTime?
    private var nextHint: BootTime?

    init(on loop: EventLoop) {
        self.loop = loop
        connect()
    }

    /// When something is to be done; nil for never.
    var wakeUp: BootTime? {
        guard let nextLook, let nextHint else { return nextLook ?? nextHint }
        return min(nextLook, nextHint)
    }

    /// A collection turned out to be locked.
    func found(locked collection: String) {
        lockedCollections.insert(collection)
    }

    /// Says what is waited for.
    func wait(for need: Need, at now: BootTime) {
        guard need != self.need else { return }
        self.need = need
        looks = 0
        pause = KeyringWatch.shortestPause
        switch need {
        case .nothing:
            nextLook = nil
            lockedCollections = []
        case .unlock:
            nextLook = now + pause
        case .arrival:
            // A bus that is there tells of arrivals by itself.
            nextLook = isConnected ? nil : now + pause
        }
    }

    /// Somebody asks for what is locked up, so that looking is worth while now.
    func urge(at now: BootTime) {
        guard case .unlock = need, let due = nextLook else { return }
        looks = 0
        pause = KeyringWatch.shortestPause
        let soonest = lastLook.map { $0 + KeyringWatch.urgedPause } ?? now
        nextLook = min(due, max(now, soonest))
    }

    /// Does what is due.
    func wake(at now: BootTime) {
        if let due = nextHint, due <= now {
            nextHint = nil
            lastHint = now
            onHint()
        }
        guard let due = nextLook, due <= now else { return }
        look(at: now)
    }

    private func look(at now: BootTime) {
        lastLook = now
        looks += 1
        if looks > KeyringWatch.eagerLooks {
            pause = min(KeyringWatch.longestPause, pause * 1.5)
        }
        nextLook = now + pause
        if !isConnected {
            connect()
            // What happened meanwhile was told to nobody.
            if isConnected { hint() }
        }
        guard case .unlock = need else {
            if isConnected { nextLook = nil }
            return
        }
        for collection in lockedCollections {
            bus?.call(
                KeyringWatch.service, collection, "org.freedesktop.DBus.Properties", "Get",
                ["org.freedesktop.Secret.Collection", "Locked"]
            ) { [weak self] answer in
                guard answer?.readBooleanVariant() == false, let self,
                    lockedCollections.remove(collection) != nil
                else { return }
                onHint()
            }
        }
    }

    // MARK: Signals

    private var isConnected: Bool { bus?.isOpen == true }

    private func connect() {
        bus = Bus(.session, on: loop)
        bus?.onDisconnect { [weak self] in self?.disconnected() }
        bus?.subscribe(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                + "member='NameOwnerChanged',arg0='\(KeyringWatch.service)'"
        ) { [weak self] message in
            self?.ownerChanged(message)
        }
        bus?.subscribe(
            "type='signal',sender='\(KeyringWatch.service)',"
                + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
                + "arg0='org.freedesktop.Secret.Collection'"
        ) { [weak self] message in
            // Each item that is stored changes a collection as well.
            guard message.readText() != nil, message.readNames()?.contains("Locked") == true
            else { return }
            self?.hint()
        }
        for member in ["CollectionCreated", "CollectionChanged"] {
            bus?.subscribe(
                "type='signal',sender='\(KeyringWatch.service)',"
                    + "interface='org.freedesktop.Secret.Service',member='\(member)'"
            ) { [weak self] _ in
                guard let self else { return }
                switch need {
                case .nothing: break
                case .unlock, .arrival: hint()
                }
            }
        }
        onConnect()
    }

    private func disconnected() {
        lockedCollections = []
        // The bus is let go of by the next look: it is what calls us.
        nextLook = .now + KeyringWatch.shortestPause
        onLoss(Failure(.keyringUnavailable, "the message bus is gone", remedy: .examination))
        onPlan()
    }

    private func ownerChanged(_ message: BusMessage) {
        guard message.readText() != nil, message.readText() != nil,
            let owner = message.readText()
        else { return }
        lockedCollections = []
        if owner.isEmpty {
            onLoss(Failure(.keyringUnavailable, "the program that kept the keyring is gone"))
        } else {
            hint()
        }
    }

    /// Follows a hint, with others that come at the same time, and later where there were too many.
    private func hint() {
        guard nextHint == nil else { return }
        let now = BootTime.now
        if let lastHint, now - lastHint >= KeyringWatch.hintPause { hints = 0 }
        hints += 1
        if hints <= KeyringWatch.freeHints {
            nextHint = now
        } else {
            nextHint = (lastHint ?? now) + KeyringWatch.hintPause
        }
        onPlan()
    }

}
