internal import AgentCore
internal import LinuxSystem

/// Notices when the Secret Service comes, goes, is locked and unlocked.
///
/// By signal where there is one. gnome-keyring that is unlocked through its control socket emits
/// none, so while something waits for an unlocked keyring, and only then, one property is read:
/// after a second, and then backing off to five.
final class KeyringWatch {
    /// The keyring may be usable again.
    var onChange: () -> Void = {}

    /// The keyring cannot be used now.
    var onLoss: (Failure) -> Void = { _ in }

    private static let service = "org.freedesktop.secrets"
    private static let alias = "/org/freedesktop/secrets/aliases/default"
    private static let firstPause = TimeSpan.seconds(1)
    private static let longestPause = TimeSpan.seconds(5)

    private let loop: EventLoop
    private var bus: Bus?
    private var nextLook: BootTime?
    private var pause = KeyringWatch.firstPause

    init(on loop: EventLoop) {
        self.loop = loop
        connect()
    }

    /// When the keyring is to be looked at; nil for never.
    var wakeUp: BootTime? { nextLook }

    /// Says whether something waits for the keyring to be unlocked, or to come.
    func isAwaited(_ isAwaited: Bool, at now: BootTime) {
        if !isAwaited {
            nextLook = nil
            pause = KeyringWatch.firstPause
        } else if nextLook == nil {
            nextLook = now + pause
        }
    }

    /// Looks, if it is time.
    func wake(at now: BootTime) {
        guard let due = nextLook, due <= now else { return }
        nextLook = now + pause
        pause = min(KeyringWatch.longestPause, pause * 1.5)
        if bus?.isOpen != true { connect() }
        bus?.call(
            KeyringWatch.service, KeyringWatch.alias, "org.freedesktop.DBus.Properties", "Get",
            ["org.freedesktop.Secret.Collection", "Locked"]
        ) { [weak self] answer in
            if answer?.readBooleanVariant() == false { self?.onChange() }
        }
    }

    private func connect() {
        bus = Bus(.session, on: loop)
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
        ) { [weak self] _ in
            self?.collectionChanged()
        }
    }

    private func ownerChanged(_ message: BusMessage) {
        guard message.readText() != nil, message.readText() != nil,
            let owner = message.readText()
        else { return }
        if owner.isEmpty {
            onLoss(Failure(.keyringUnavailable, "the program that kept the keyring is gone"))
        } else {
            onChange()
        }
    }

    /// Which property changed is not worth parsing: whether it is locked is asked.
    private func collectionChanged() {
        bus?.call(
            KeyringWatch.service, KeyringWatch.alias, "org.freedesktop.DBus.Properties", "Get",
            ["org.freedesktop.Secret.Collection", "Locked"]
        ) { [weak self] answer in
            guard let isLocked = answer?.readBooleanVariant() else { return }
            if isLocked {
                self?.onLoss(Failure(.keyringLocked, "the keyring is locked"))
            } else {
                self?.onChange()
            }
        }
    }
}
