internal import LinuxSystem

/// One profile's successor slot, as canopyd keeps it: a descriptor to hand on, never mapped or
/// read here.
final class SuccessorSlot {
    private let file: MemoryFile

    /// Whether the service manager has it too, so that it outlives canopyd.
    var isKept = false

    init() throws(SystemError) {
        file = try MemoryFile.make(named: "canopyd-successor")
    }

    /// Takes over what the service manager kept.
    init(kept descriptor: Int32) {
        file = MemoryFile(owning: descriptor)
        isKept = true
    }

    var descriptor: Int32 { file.descriptor }

    /// Whether something waits in it, told by its size alone.
    var isFull: Bool { file.isFull }
}
