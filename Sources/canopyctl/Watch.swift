internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Follows a profile: says what happens, and keeps a file or runs a command after each rotation.
enum Watch: Command {
    static let name = "watch"
    static let summary = "follow a profile's state and rotations"
    static let remarks = """
        Goes on until it is ended, also while canopyd is started anew. CMD is run by sh, with
        CANOPY_PROFILE and CANOPY_GENERATION set, and CANOPY_ACCESS_TOKEN_FILE with --write-file;
        the next rotation waits for its end.
        """
    static let options: Options = [.profile, .execute, .writeFile, .json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let profile = try arguments.profile
        let file = arguments[.writeFile].map(TokenFile.init(path:))
        let subscription = try Subscription(profile)
        let command = arguments[.execute]
        func handOn(_ fresh: Freshness) throws(Complaint) {
            try act(on: fresh, profile, file, command: command)
        }
        var handover = Handover()
        while true {
            let deadline = subscription.deadline
            try Watch.wait(
                for: subscription.descriptor, until: min(deadline, handover.retryAt ?? deadline))
            // As tail -f does, and not at the next rotation only.
            if LinuxSystem.StandardOutput.readerHasGone {
                LinuxSystem.StandardOutput.endWithReader()
            }
            switch subscription.advance() {
            case .nothing:
                break
            case .lost(let complaint):
                StandardError.say(
                    "canopyctl: \(Plain.line(complaint.what)); looking for canopyd again")
            case .events(let events):
                for event in events {
                    try say(event, profile, asJSON: arguments[flag: .json])
                    if let fresh = try event.json(Freshness.init) { handover.take(fresh, handOn) }
                }
            }
            handover.retry(handOn)
        }
    }

    private static func wait(
        for descriptor: Int32, until deadline: BootTime
    ) throws(Complaint) {
        let left = max(.zero, deadline - .now)
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            // That its reader goes is told unasked.
            pollfd(
                fd: LinuxSystem.StandardOutput.canLoseReader ? STDOUT_FILENO : -1, events: 0,
                revents: 0),
        ]
        // Rounded up, so that the last millisecond is not spent turning.
        let ready = poll(&entries, 2, Int32(clamping: left.nanoseconds / 1_000_000 + 1))
        if ready < 0, errno != EINTR {
            throw Complaint(
                .failure, "canopyd cannot be waited for", detail: "\(SystemError.last("poll"))")
        }
    }

    /// One line for an event.
    private static func say(
        _ event: EventReader.Event, _ profile: ProfileName, asJSON: Bool
    ) throws(Complaint) {
        if asJSON {
            var line = Array(#"{"event":"\#(Plain.line(event.name))","data":"#.utf8)
            line += event.data
            line += Array("}\n".utf8)
            return try StandardOutput.write(line)
        }
        let words: String? = try event.json { value throws(Complaint) in
            if event.name == "rotated" {
                let expiry = value["expires_at"]?.string ?? "?"
                return "rotated to generation \(value["generation"]?.int ?? 0), "
                    + "which expires at \(expiry)"
            }
            guard let state = value["state"]?.string else { return nil }
            let reason = value["reason"]?.string.map { " (\($0))" } ?? ""
            let error = value["last_error"]?["detail"]?.string.map { ": \($0)" } ?? ""
            return state + reason + (state == "active" ? "" : error)
        }
        guard let words else { return }
        try StandardOutput.print(
            "\(Timestamp.rfc3339(.now)) \(profile) " + Plain.line(words))
    }

    /// Hands the new token on.
    private static func act(
        on fresh: Freshness, _ profile: ProfileName, _ file: TokenFile?, command: String?
    ) throws(Complaint) {
        if let file { try file.write(GrantedToken.of(profile).value) }
        guard let command else { return }
        var variables: [(name: String, value: EnvironmentValue)] = [
            ("CANOPY_PROFILE", .text(profile.text)),
            ("CANOPY_GENERATION", .text(String(fresh.generation))),
        ]
        if let file { variables.append(("CANOPY_ACCESS_TOKEN_FILE", .text(file.path))) }
        do throws(SystemError) {
            let process = try Execution.start(["/bin/sh", "-c", command], adding: variables)
            let status = Execution.wait(for: process)
            if status != 0 {
                StandardError.say("canopyctl: the command ended with status \(status)")
            }
        } catch {
            StandardError.say("canopyctl: the command cannot be run (\(error))")
        }
    }
}
