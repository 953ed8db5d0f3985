internal import AgentCore
internal import LinuxSystem

/// Looks at everything that canopyd needs, and names the command that mends what is wrong.
enum Doctor: Command {
    static let name = "doctor"
    static let summary = "check all that canopyd needs, and say how to mend it"
    static let remarks = """
        Works without a running canopyd. The keyring is tried with an item of its own, which is
        deleted again; nothing that is signed in is touched, and no prompt is raised.
        """
    static let options: Options = [.json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let configuration = ConfigurationCheck()
        let daemon = DaemonCheck()
        var findings = SystemCheck.findings() + [configuration.finding] + daemon.findings
        findings += [UnitCheck.finding(profiles: daemon.profiles), UnsealingCheck.finding]
        findings +=
            ExchangeCheck(
                configuration.settings,
                servers: servers(configuration.settings, daemon)
            ).findings
        let isWell = !findings.contains { $0.verdict == .failed }
        if arguments[flag: .json] {
            try StandardOutput.print(json(findings, isWell))
        } else {
            for line in lines(findings, isWell) { try StandardOutput.print(line) }
        }
        return exitCode(findings)
    }

    /// Every server that a profile uses, or would; Canopy's own where none is named.
    private static func servers(_ settings: Settings, _ daemon: DaemonCheck) -> [String] {
        var servers = daemon.servers
        servers += settings.profiles.values.compactMap { $0.url?.text }
        if let url = Environment.process["CANOPY_URL"] { servers.append(url) }
        if servers.isEmpty { servers = [BaseURL.standard] }
        return Set(servers).sorted()
    }

    /// The first failure decides, as it would for a request for a token.
    private static func exitCode(_ findings: [Finding]) -> ExitCode {
        guard let first = findings.first(where: { $0.verdict == .failed }) else { return .done }
        switch first.check {
        case .runtimeDirectory, .socket, .daemon, .version: return .daemonNotReached
        case .unsealing, .messageBus, .secretService, .collection, .unlocked, .probe:
            return .keyring
        case .server, .clock: return .server
        case .profile: return .signInNeeded
        case .configuration, .stateDirectory, .exchange, .lingering, .systemd, .unit, .lockedMemory:
            return .failure
        }
    }

    private static func json(_ findings: [Finding], _ isWell: Bool) -> String {
        var writer = JSONWriter(into: [UInt8]())
        writer.beginObject()
        writer.member("version", Int64(1))
        writer.member("ok", isWell)
        writer.key("findings")
        writer.beginArray()
        for finding in findings { finding.write(to: &writer) }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    private static func lines(_ findings: [Finding], _ isWell: Bool) -> [String] {
        let style = StandardOutput.style
        var lines: [String] = []
        for finding in findings {
            let mark: String
            switch finding.verdict {
            case .ok: mark = style.good("ok     ")
            case .warning: mark = style.doubtful("warning")
            case .failed: mark = style.alarming("FAILED ")
            case .skipped: mark = "skipped"
            }
            let subject = finding.check.rawValue.replacing("_", with: " ")
            lines.append("\(mark)  \(subject): \(Plain.line(finding.detail))")
            if finding.verdict != .ok, let fix = finding.fix {
                lines.append("         mend it: \(Plain.line(fix))")
            }
        }
        let failures = findings.count { $0.verdict == .failed }
        lines.append(
            isWell
                ? "nothing keeps canopyd from its work"
                : "\(failures) check\(failures == 1 ? "" : "s") failed; mend the first one first")
        return lines
    }
}
