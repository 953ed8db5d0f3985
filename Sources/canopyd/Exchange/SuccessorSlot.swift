internal import LinuxSystem

/// One profile's successor slot, as canopyd keeps it: a descriptor to hand on, never mapped or
/// read here.
final class SuccessorSlot {
    private let file: MemoryFile

    init() throws(SystemError) {
        file = try MemoryFile.make(named: "canopyd-successor")
    }

    var descriptor: Int32 { file.descriptor }

    /// Whether something waits in it, told by its size alone.
    var isFull: Bool { file.isFull }
}
