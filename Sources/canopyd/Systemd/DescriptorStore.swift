internal import AgentCore
internal import CLinux
internal import CSystemd
internal import Glibc
internal import LinuxSystem

/// The successor slots in the service manager's descriptor store, where they outlive canopyd.
///
/// The unit needs `FileDescriptorStoreMax=`: the default of 0 loses them silently.
enum DescriptorStore {
    /// What goes before the profile in a descriptor's name.
    private static let prefix = "successor-"

    /// Gives the manager a copy of the descriptor; false where there is no manager.
    static func add(_ slot: SuccessorSlot, of profile: ProfileName) -> Bool {
        var descriptor = slot.descriptor
        return sd_pid_notify_with_fds(
            0, 0, "FDSTORE=1\nFDNAME=\(prefix)\(profile)", &descriptor, 1) > 0
    }

    /// Lets the manager's copy go.
    static func remove(_ profile: ProfileName) {
        // Without a manager there is nothing to let go of.
        _ = sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(prefix)\(profile)")
    }

    /// The slots among what the manager passed; what is none of ours is closed, and logged.
    static func slots(
        among stored: [(name: String, descriptor: Int32)]
    ) -> [ProfileName: SuccessorSlot] {
        var slots: [ProfileName: SuccessorSlot] = [:]
        for (name, descriptor) in stored {
            guard let profile = profile(named: name), slots[profile] == nil,
                isMemoryFile(descriptor)
            else {
                Journal.write(
                    .descriptorUseless, (.name, name))
                close(descriptor)
                continue
            }
            slots[profile] = SuccessorSlot(kept: descriptor)
        }
        return slots
    }

    private static func profile(named name: String) -> ProfileName? {
        guard name.hasPrefix(prefix) else { return nil }
        do throws(ProfileName.Malformed) {
            return try ProfileName(String(name.dropFirst(prefix.count)))
        } catch {
            return nil
        }
    }

    private static func isMemoryFile(_ descriptor: Int32) -> Bool {
        var status = stat()
        // Of all files only a memory file has no name and is regular.
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
            && status.st_nlink == 0
    }
}
