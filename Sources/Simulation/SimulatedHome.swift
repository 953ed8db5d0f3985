internal import AgentCore

/// What one user has on one machine: keyring, state directory, successor slot and lock.
final class SimulatedHome {
    var keyring: SimulatedKeyring

    // The state directory: what readers see, and what a power cut leaves.
    private(set) var state: StateFile?
    private(set) var syncedState: StateFile?
    var anchor: Anchor?
    var isDiskFull = false
    var isStateUnreadable = false

    /// In the runtime directory: lost when the user's service manager ends.
    var runtimeMarks: [SignInID: Int64] = [:]

    /// The slot that canopyd hands to its exchanges.
    var slot = SimulatedSlot()

    /// What the service manager keeps of a canopyd with another runtime directory.
    var otherSlot = SimulatedSlot()

    var lockHolder: SimulatedProcess?

    /// Whether there is an item with another machine's attribute, which is none of ours.
    let holdsForeignItem: Bool

    /// The state directory's file of the profile.
    struct StateFile {
        let signIns: KnownSignIns
        /// Whether a backup brought it back: its contents then name another file.
        let isCopy: Bool
    }

    init(keyring: SimulatedKeyring, holdsForeignItem: Bool = false) {
        self.keyring = keyring
        self.holdsForeignItem = holdsForeignItem
    }

    var signIns: KnownSignIns? { state?.signIns }

    /// The file is renamed into its place; a power cut may still undo that.
    func rename(_ signIns: KnownSignIns) {
        state = StateFile(signIns: signIns, isCopy: false)
    }

    func syncState() { syncedState = state }

    /// Somebody puts another file in its place, or none.
    func replaceState(_ signIns: KnownSignIns?, isCopy: Bool) {
        state = signIns.map { StateFile(signIns: $0, isCopy: isCopy) }
        syncedState = state
    }

    /// `keepsUnsynced`: the kernel has happened to write what nobody asked it to.
    func cutPower(keepsUnsynced: Bool) {
        if keepsUnsynced { syncedState = state }
        state = syncedState
    }

    var isUsable: Bool {
        !isDiskFull && !isStateUnreadable && keyring.condition == .working
    }
}
