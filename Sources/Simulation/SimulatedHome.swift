internal import AgentCore

/// What one user has on one machine: keyring, state directory, successor slot and lock.
final class SimulatedHome {
    var keyring: SimulatedKeyring

    // The state directory.
    var signIns: KnownSignIns?
    var anchor: Anchor?
    var isDiskFull = false
    var isStateUnreadable = false

    /// In the runtime directory: lost at a reboot.
    var runtimeMarks: [SignInID: Int64] = [:]

    /// A memory file in the service manager's hands: lost at a reboot.
    var slot = Slot.empty
    var lockHolder: SimulatedProcess?

    /// Whether the home is another machine's copy: its items have another machine's attribute.
    let isOtherMachine: Bool

    enum Slot {
        case empty
        case torn
        case session(StoredSession)
    }

    init(keyring: SimulatedKeyring, isOtherMachine: Bool = false) {
        self.keyring = keyring
        self.isOtherMachine = isOtherMachine
    }

    var isUsable: Bool {
        !isDiskFull && !isStateUnreadable && keyring.condition == .working
    }
}
