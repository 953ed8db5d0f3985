internal import AgentCore

/// What canopyd says of itself, for people.
struct StatusReport {
    private let version: String
    private let uptime: Int64?
    private let connections: Int64?
    private let keyringState: String
    private let keyringOwner: String?
    private let keyringLimit: String?
    let profiles: [ReportedProfile]

    /// Reads a status object; with `only`, that profile alone.
    init(_ value: JSONValue, only: ProfileName?) throws(Complaint) {
        guard let list = value["profiles"] else { throw .incomprehensible("it has no profiles") }
        version = value["version"]?.string ?? "(unknown version)"
        uptime = Countdown.seconds(to: value["started_at"]?.string).map { -$0 }
        connections = value["connections"]?.int
        keyringState = value["keyring"]?["state"]?.string ?? "unknown"
        keyringOwner = value["keyring"]?["owner"]?.string
        keyringLimit = value["keyring"]?["limit"]?.string
        profiles = list.elements.map(ReportedProfile.init).filter {
            only == nil || $0.name == only?.text
        }
    }

    /// The first profile that cannot get a token decides.
    var exitCode: ExitCode {
        profiles.lazy.map(\.exitCode).first { $0 != .done } ?? .done
    }

    /// With `only`, that others may be signed in is not denied.
    func lines(style: Style, only: ProfileName?) -> [String] {
        var result = [daemonLine, keyringLine(style)]
        if let keyringLimit { result.append("  " + Plain.line(keyringLimit)) }
        guard !profiles.isEmpty else {
            return only == nil
                ? result + ["", "no profile is signed in; sign in: canopyctl login"] : result
        }
        result.append("")
        var table = Table()
        let headings = ["PROFILE", "STATE", "WHO", "TOKEN EXPIRES", "NEXT ROTATION", "GENERATION"]
        table.row(headings, paint: [:])
        for profile in profiles {
            table.row(
                profile.cells.map(Plain.line),
                paint: [0: { style.strong($0) }, 1: { profile.paint($0, style) }])
        }
        let lines = table.lines
        result.append(lines[0])
        for (profile, line) in zip(profiles, lines.dropFirst()) {
            result.append(line)
            result += profile.explanation.map { "  " + Plain.line($0) }
        }
        return result
    }

    private var daemonLine: String {
        var line = "canopyd \(version)"
        if let uptime { line += ", up \(Countdown.words(seconds: uptime))" }
        if let connections {
            line += ", \(connections) connection\(connections == 1 ? "" : "s")"
        }
        return Plain.line(line)
    }

    private func keyringLine(_ style: Style) -> String {
        let owner = keyringOwner.map { " (\(Plain.line($0)))" } ?? ""
        switch keyringState {
        case "ok": return "keyring " + style.good("ok") + owner
        case "locked":
            return "keyring " + style.doubtful("locked") + owner
                + ": unlock it, everything goes on by itself then"
        case "unavailable":
            return "keyring " + style.alarming("unavailable") + owner
                + ": see to it that a Secret Service runs, such as gnome-keyring"
        default: return "keyring " + style.doubtful(Plain.line(keyringState)) + owner
        }
    }
}
