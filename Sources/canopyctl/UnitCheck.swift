internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Whether the service manager runs canopyd such that no session is lost to it: a drop-in of the
/// user's or the machine's can undo what the unit says.
enum UnitCheck {
    /// How long the manager is waited for.
    private static let patience = TimeSpan.seconds(10)

    /// `profiles` is how many canopyd serves; nil if it does not say.
    static func finding(profiles: Int?) -> Finding {
        let output: (exitCode: Int32, text: String)
        do throws(SystemError) {
            output = try Execution.output(
                of: [
                    "systemctl", "--user", "--no-pager", "show", ServiceUnit.name,
                    "--property=" + ServiceUnit.properties.joined(separator: ","),
                ], until: .now + patience)
        } catch {
            return Finding(.unit, .skipped, "there is no service manager to ask: \(error)")
        }
        guard output.exitCode == 0 else {
            return Finding(.unit, .skipped, "this user has no service manager that answers")
        }
        let unit = ServiceUnit(output.text)
        guard unit.isLoaded else {
            return Finding(
                .unit, .skipped, "there is no \(ServiceUnit.name): canopyd is started otherwise")
        }
        let faults = unit.faults(profiles: profiles)
        guard faults.isEmpty else {
            var detail = faults.map(\.detail).joined(separator: "; ")
            if !unit.dropIns.isEmpty { detail += " (changed by \(unit.dropIns))" }
            return Finding(
                .unit, .failed, "\(ServiceUnit.name): \(detail)", fix: ServiceUnit.cure(for: faults)
            )
        }
        return Finding(
            .unit, .ok,
            unit.isActive
                ? "\(ServiceUnit.name) keeps what canopyd has not stored yet"
                : "\(ServiceUnit.name) does not run now, and would keep what is not stored yet")
    }
}
