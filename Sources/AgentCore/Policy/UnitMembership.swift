/// Which systemd units a process is in, as its control group says.
///
/// A unit is a directory of its name in the control group tree, below slices: for a user's own
/// units below `user@UID.service`, the unit of the user's manager (systemd's `cgroup-util.c`,
/// `cg_path_get_unit` and `cg_path_get_user_unit`). Below its unit a process may be anywhere.
package struct UnitMembership: Equatable, Sendable {
    /// The unit of the system's manager; nil for a process in none.
    package let system: String?

    /// The unit of a user's manager; nil for a process that no such manager runs.
    package let user: String?

    /// The unit that the process was started in, by whichever manager.
    package var own: String? { user ?? system }

    /// All of them: a process is also in the unit of the manager that runs its own.
    package var names: [String] { [user, system].compactMap(\.self) }

    /// Reads `/proc/PID/cgroup`; nil if no line says where systemd put the process.
    ///
    /// The line of the unified hierarchy counts; on a machine of the old kind, where the kernel
    /// shows that hierarchy empty or not at all, systemd's own (`name=systemd`).
    package init?(controlGroups bytes: some Collection<UInt8>) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var unified: Substring?
        var named: Substring?
        for line in text.split(separator: "\n") {
            let parts = line.split(
                separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            if parts[0] == "0", parts[1].isEmpty {
                unified = unified ?? parts[2]
            } else if parts[1] == "name=systemd" {
                named = named ?? parts[2]
            }
        }
        let path = unified == "/" ? named ?? unified : unified ?? named
        guard let path, path.first == "/" else { return nil }
        self.init(path: path)
    }

    private init(path: Substring) {
        var rest = path.split(separator: "/")[...]
        system = UnitMembership.unit(&rest)
        let isManager = system.map { $0.hasPrefix("user@") && $0.hasSuffix(".service") }
        user = isManager == true ? UnitMembership.unit(&rest) : nil
    }

    /// Takes the slices, and the unit in them, off the front; nil if what comes there is no unit.
    private static func unit(_ rest: inout ArraySlice<Substring>) -> String? {
        while let part = rest.popFirst() {
            // systemd puts this before names that the kernel's own files could have.
            let name = part.first == "_" ? part.dropFirst() : part
            if UnitName.isSlice(name) { continue }
            return UnitName.holdsProcesses(name) ? String(name) : nil
        }
        return nil
    }
}
