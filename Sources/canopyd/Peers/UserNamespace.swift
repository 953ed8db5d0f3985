internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The user namespace that this process is in.
enum UserNamespace {
    /// Whether it is one of its own, such as `PrivateUsers=` in a unit makes: the kernel lets nobody
    /// in it look at the programs outside.
    static var isOwn: Bool {
        do throws(SystemError) {
            let map = try FileDescriptor.open("/proc/self/uid_map", O_RDONLY)
            let bytes = try map.readAll(limit: Limits.processFileBytes, subject: "uid_map")
            let fields = String(decoding: bytes, as: UTF8.self).split { $0 == " " || $0 == "\n" }
            if fields == ["0", "0", "4294967295"] { return false }
        } catch {
            return false
        }
        // All of a container may be in one; whoever started us is then in it too.
        var status = stat()
        return stat("/proc/\(getppid())/ns/user", &status) != 0 && errno == EACCES
    }

    static let blindness =
        "AllowExecutable= lets nobody in: canopyd runs in a user namespace of its own (PrivateUsers= "
        + "in its unit), from which no program's executable can be seen; AllowUnit= works, and "
        + "canopyd.conf(5) says how to have both"
}
