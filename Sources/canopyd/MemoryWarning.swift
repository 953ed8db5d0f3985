internal import AgentCore
internal import LinuxSystem
internal import Synchronization

/// The one warning that secrets may get to disk: the limit that causes it is the same for canopyd and
/// its exchanges, and a line for each exchange would be one for each rotation.
enum MemoryWarning {
    private static let isGiven = Atomic(false)

    /// From now on, warns of canopyd's own memory as soon as there is reason to.
    static func arm() {
        LockedMemory.onRefusal { give(of: "canopyd", "\($0)") }
    }

    /// Warns of a program's memory, unless that was done before.
    static func give(of program: String, _ reason: String) {
        guard !isGiven.exchange(true, ordering: .relaxed) else { return }
        Journal.write(
            .memoryUnlocked, (.name, program), (.error, reason),
            (.fix, "systemctl --user edit canopyd: [Service] LimitMEMLOCK=8M"))
    }
}
