/// What the service manager makes of `canopyd.service`, drop-ins included, and whether a session
/// outlives everything under it.
///
/// Read from what `systemctl show` prints. The rules are ROTATION's, under "Signals".
package struct ServiceUnit: Sendable {
    package static let name = "canopyd.service"

    /// What `systemctl show` is asked for.
    package static let properties = [
        "LoadState", "ActiveState", "NeedDaemonReload", "DropInPaths", "FileDescriptorStoreMax",
        "NFileDescriptorStore", "KillMode", "OOMPolicy", "TimeoutStopUSec",
        "StartLimitIntervalUSec",
    ]

    /// What keeps the unit from its work.
    package struct Fault: Equatable, Sendable {
        /// What is wrong, for people.
        package let detail: String

        /// The line that mends it, and the section that it belongs to; nil where the unit is right and
        /// the manager has not heard of it.
        package let setting: Setting?
    }

    /// A line of a unit file.
    package struct Setting: Equatable, Sendable {
        package let section: String
        package let line: String
    }

    private let values: [String: String]

    /// Reads lines of `NAME=VALUE`; what is none is left out.
    package init(_ text: String) {
        var values: [String: String] = [:]
        for line in text.split(separator: "\n") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            values[String(line[..<equals])] = String(line[line.index(after: equals)...])
        }
        self.values = values
    }

    /// Whether there is such a unit.
    package var isLoaded: Bool { values["LoadState"] == "loaded" }

    /// Whether canopyd runs as this unit.
    package var isActive: Bool {
        ["active", "reloading", "deactivating"].contains(values["ActiveState"])
    }

    /// The files that change what the unit itself says; empty for none.
    package var dropIns: String { values["DropInPaths"] ?? "" }

    /// What is wrong with it for so many profiles; nil where the number is not known.
    package func faults(profiles: Int?) -> [Fault] {
        guard values["NeedDaemonReload"] != "yes" else {
            return [
                Fault(detail: "its files have changed since the manager read them", setting: nil)
            ]
        }
        return [
            descriptorFault(profiles: profiles), killFault, memoryFault, stopFault, startFault,
        ].compactMap(\.self)
    }

    // MARK: Each rule

    /// The default of 0 loses descriptors silently: the manager acknowledges none.
    private func descriptorFault(profiles: Int?) -> Fault? {
        guard let most = number("FileDescriptorStoreMax") else { return nil }
        let needed = max(1, profiles ?? 1)
        guard most >= needed else {
            return Fault(
                detail: "FileDescriptorStoreMax=\(most) keeps no slot for "
                    + (needed == 1 ? "a profile" : "each of \(needed) profiles")
                    + ", and a next token that the keyring refuses is lost with canopyd",
                setting: .service("FileDescriptorStoreMax=\(Limits.profiles)"))
        }
        guard isActive, let profiles, let kept = number("NFileDescriptorStore"), kept < profiles
        else { return nil }
        return Fault(
            detail: "the manager keeps \(kept) of \(profiles) successor slots, for it was not "
                + "allowed more when canopyd gave them to it",
            setting: nil)
    }

    /// With `mixed` the manager kills a running exchange the moment that canopyd dies.
    private var killFault: Fault? {
        differing(
            "KillMode", from: "control-group",
            "an exchange that has spent the token is not waited for")
    }

    private var memoryFault: Fault? {
        differing(
            "OOMPolicy", from: "continue",
            "an exchange that runs out of memory takes canopyd along")
    }

    private var stopFault: Fault? {
        guard let text = values["TimeoutStopUSec"], let seconds = ServiceUnit.seconds(in: text),
            seconds < Int64(Limits.unitStopSeconds)
        else { return nil }
        return Fault(
            detail: "TimeoutStopSec=\(text): a rotation may take longer, and is killed before its "
                + "token is stored",
            setting: .service("TimeoutStopSec=\(Limits.unitStopSeconds)"))
    }

    private var startFault: Fault? {
        guard let text = values["StartLimitIntervalUSec"],
            let seconds = ServiceUnit.seconds(in: text),
            seconds > 0
        else { return nil }
        return Fault(
            detail: "StartLimitIntervalSec=\(text): after some failures in a row canopyd is not "
                + "started any more",
            setting: Setting(section: "Unit", line: "StartLimitIntervalSec=0"))
    }

    private func differing(_ name: String, from right: String, _ consequence: String) -> Fault? {
        guard let value = values[name], value != right else { return nil }
        return Fault(
            detail: "\(name)=\(value): \(consequence)", setting: .service("\(name)=\(right)"))
    }

    private func number(_ name: String) -> Int? { values[name].flatMap { Int($0) } }

    /// The whole seconds of a time as `systemctl show` writes it (`1min 30s`, `infinity`, `0`); nil
    /// where it is none.
    package static func seconds(in text: String) -> Int64? {
        guard text != "infinity" else { return .max }
        guard text != "0" else { return 0 }
        var milliseconds: Int64 = 0
        let words = text.split(separator: " ")
        for word in words {
            let digits = word.prefix { $0.isASCII && $0.isNumber }
            guard let count = Int64(digits), count <= 1_000_000_000,
                let unit = units[String(word.dropFirst(digits.count))]
            else { return nil }
            milliseconds += count * unit
        }
        return words.isEmpty ? nil : milliseconds / 1000
    }

    /// Milliseconds of each; less than one counts as none.
    private static let units: [String: Int64] = [
        "us": 0, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
        "w": 604_800_000, "month": 2_629_800_000, "y": 31_557_600_000,
    ]

    // MARK: The cure

    /// The command that mends all of it: a drop-in that is read after all others, whoever wrote them.
    package static func cure(for faults: [Fault]) -> String {
        let settings = faults.compactMap(\.setting)
        let restart =
            "systemctl --user daemon-reload && systemctl --user restart \(ServiceUnit.name)"
        guard !settings.isEmpty else { return restart }
        var text = ""
        for section in ["Unit", "Service"] {
            let lines = settings.filter { $0.section == section }.map(\.line)
            guard !lines.isEmpty else { continue }
            text += "[\(section)]\\n" + lines.map { $0 + "\\n" }.joined()
        }
        return "d=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/\(name).d; mkdir -p \"$d\" "
            + "&& printf '\(text)' >\"$d/zz-doctor.conf\" && " + restart
    }
}

extension ServiceUnit.Setting {
    fileprivate static func service(_ line: String) -> ServiceUnit.Setting {
        ServiceUnit.Setting(section: "Service", line: line)
    }
}
