internal import AgentCore
internal import Glibc
internal import LinuxSystem

/// Asks canopyd how it is.
struct DaemonCheck {
    private(set) var findings: [Finding] = []

    /// How many profiles are signed in; nil if canopyd does not say.
    private(set) var profiles: Int?

    /// The servers of the profiles that are signed in.
    private(set) var servers: [String] = []

    init() {
        let client: Client
        do throws(Complaint) {
            client = try Client()
        } catch {
            findings.append(
                Finding(.daemon, .skipped, "without a socket's path it cannot be asked"))
            return
        }
        do throws(Complaint) {
            let response = try client.send(
                .get, "/v1/status", seconds: Limits.requestTimeoutSeconds
            ).expecting(200)
            try response.json { value throws(Complaint) in
                take(value)
            }
        } catch {
            let detail = [error.what, error.detail].compactMap(\.self).joined(separator: ": ")
            let fix = DaemonCheck.fix(isThere: error.exitCode != .daemonNotReached)
            findings.append(Finding(.daemon, .failed, detail, fix: fix))
        }
    }

    /// What starts canopyd where there is no systemd to do it.
    static let startingByHand = "canopyd &"

    /// One that is there and of no use has to go first.
    ///
    /// It may be stopped, as by Ctrl-Z, and then hears of no other signal than this one, which costs
    /// nothing: what it was doing its exchange ends.
    private static func fix(isThere: Bool) -> String {
        guard SystemdVersion.isRunning else {
            return isThere
                ? "pkill -KILL -u \(getuid()) -x canopyd; sleep 1; \(startingByHand)"
                : startingByHand
        }
        return "systemctl --user \(isThere ? "restart" : "start") canopyd"
    }

    private mutating func take(_ status: JSONValue) {
        findings.append(Finding(.daemon, .ok, "canopyd answers"))
        let version = status["version"]?.string ?? "unknown"
        findings.append(
            version == Version.text
                ? Finding(.version, .ok, version)
                : Finding(
                    .version, .warning,
                    "canopyd is version \(version) and canopyctl \(Version.text)",
                    fix: "systemctl --user restart canopyd"))
        guard let profiles = status["profiles"] else { return }
        self.profiles = profiles.elements.reduce(0) { count, _ in count + 1 }
        for profile in profiles.elements.map(ReportedProfile.init) {
            findings.append(finding(of: profile))
        }
        servers = profiles.elements.compactMap { $0["url"]?.string }.filter { !$0.isEmpty }
    }

    private func finding(of profile: ReportedProfile) -> Finding {
        let named = profile.name == ProfileName.standard.text ? "" : " --profile \(profile.name)"
        switch profile.exitCode {
        case .done:
            return Finding(.profile, .ok, "\(profile.name) is \(profile.stateText)")
        case .signInNeeded:
            return Finding(
                .profile, .failed, "\(profile.name) needs a new sign-in",
                fix: "canopyctl login\(named)")
        case .failure, .usage, .daemonNotReached, .keyring, .server, .forbidden, .unknownProfile,
            .timeout:
            // The checks of what it waits for come below, with their own commands.
            let trouble = profile.trouble.map { ": \($0)" } ?? ""
            return Finding(.profile, .warning, "\(profile.name) is \(profile.stateText)\(trouble)")
        }
    }
}
