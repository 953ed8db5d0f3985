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
    ///
    /// Bytes are compared and not characters: in a name of its own making a process may put a mark
    /// that makes one character of itself and the slash before it.
    package init?(controlGroups bytes: some Collection<UInt8>) {
        var unified: ArraySlice<UInt8>?
        var named: ArraySlice<UInt8>?
        for line in Array(bytes).split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(
                separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            if parts[0].elementsEqual("0".utf8), parts[1].isEmpty {
                unified = unified ?? parts[2]
            } else if parts[1].elementsEqual("name=systemd".utf8) {
                named = named ?? parts[2]
            }
        }
        let isRoot = unified?.elementsEqual("/".utf8) == true
        let path = isRoot ? named ?? unified : unified ?? named
        guard let path, path.first == UInt8(ascii: "/") else { return nil }
        self.init(path: path)
    }

    private init(path: ArraySlice<UInt8>) {
        var rest = path.split(separator: UInt8(ascii: "/"))[...]
        system = UnitMembership.unit(&rest)
        let isManager = system.map { $0.hasPrefix("user@") && $0.hasSuffix(".service") }
        user = isManager == true ? UnitMembership.unit(&rest) : nil
    }

    /// Takes the slices, and the unit in them, off the front; nil if what comes there is no unit.
    private static func unit(_ rest: inout ArraySlice<ArraySlice<UInt8>>) -> String? {
        while let part = rest.popFirst() {
            // systemd puts this before names that the kernel's own files could have.
            let bytes = part.first == UInt8(ascii: "_") ? part.dropFirst() : part
            let name = String(decoding: bytes, as: UTF8.self)
            if UnitName.isSlice(name) { continue }
            return UnitName.holdsProcesses(name) ? name : nil
        }
        return nil
    }
}
