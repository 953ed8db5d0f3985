internal import AgentCore
internal import CLinux
internal import CSystemd
internal import Glibc
internal import LinuxSystem

/// The successor slots in the service manager's descriptor store, where they outlive canopyd.
///
/// The unit needs `FileDescriptorStoreMax=`: the default of 0 loses them, before systemd 254 silently.
struct DescriptorStore {
    /// What goes before the profile in a descriptor's name.
    private static let prefix = "successor-"

    private let allowance: DescriptorAllowance
    private var kept: Set<ProfileName>

    /// Whether the journal has been told that a slot is not kept.
    private var hasTold = false

    /// `kept` are the profiles whose slots the manager has handed over, and keeps.
    init(keeping kept: Set<ProfileName>) {
        self.kept = kept
        let environment = Environment.process
        let isSystemds = environment["SYSTEMD_EXEC_PID"] == String(getpid())
        allowance = DescriptorAllowance(
            told: environment["FDSTORE"],
            systemd: isSystemds ? SystemdVersion.installed()?.major : nil)
    }

    /// Gives the manager a copy of the descriptor; false where it does not keep it, or there is none.
    mutating func add(_ slot: SuccessorSlot, of profile: ProfileName) -> Bool {
        guard allowance.permitsOneMore(than: kept.count) else {
            if !hasTold {
                Journal.write(.slotUnkept, (.profile, profile.text))
                hasTold = true
            }
            return false
        }
        var descriptor = slot.descriptor
        guard
            sd_pid_notify_with_fds(
                0, 0, "FDSTORE=1\nFDNAME=\(DescriptorStore.prefix)\(profile)", &descriptor, 1) > 0
        else { return false }
        kept.insert(profile)
        return true
    }

    /// Lets the manager's copy go.
    mutating func remove(_ profile: ProfileName) {
        kept.remove(profile)
        // Without a manager there is nothing to let go of.
        _ = sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(DescriptorStore.prefix)\(profile)")
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
