internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A program that runs with a token, and what is done for it when the token rotates.
final class Supervision {
    private let arguments: [String]
    private let profile: ProfileName
    private let variable: String
    private let onRotate: Exec.OnRotate
    private let file: TokenFile?
    private let signals: Int32
    private var subscription: Subscription
    private var handover = Handover()
    private var token: GrantedToken
    private var process: pid_t = 0

    /// Until when a program may go on that is to be started again.
    private var killAt: BootTime?

    init(
        of arguments: [String], profile: ProfileName, variable: String, onRotate: Exec.OnRotate
    ) throws(Complaint) {
        self.arguments = arguments
        self.profile = profile
        self.variable = variable
        self.onRotate = onRotate
        token = try GrantedToken.of(profile)
        subscription = try Subscription(profile)
        file = Supervision.makeFile()
        var taken = sigset_t()
        sigemptyset(&taken)
        for number in Supervision.forwarded + [SIGCHLD] { sigaddset(&taken, number) }
        sigprocmask(SIG_BLOCK, &taken, nil)
        signals = clinux_signalfd(&taken)
        guard signals >= 0 else {
            throw Complaint(
                .failure, "signals cannot be waited for",
                detail: "\(SystemError.last("signalfd"))")
        }
    }

    private static let forwarded = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]

    /// Runs it to its end; its exit status, 128 and the signal's number for one that ended it.
    func run() throws(Complaint) -> Int32 {
        defer { file?.remove() }
        try file?.write(token.value)
        try start()
        while true {
            try wait()
            for signal in takeSignals() {
                if signal.number == SIGCHLD {
                    if let status = reap() {
                        guard killAt != nil else { return status }
                        killAt = nil
                        try start()
                    }
                } else if !signal.isFromTerminal {
                    kill(process, signal.number)
                }
            }
            if let end = killAt, end <= .now {
                killAt = .now + .seconds(Int64(Limits.restartPatienceSeconds))
                kill(process, SIGKILL)
            }
            follow()
        }
    }

    // MARK: The program

    private func start() throws(Complaint) {
        var variables: [(name: String, value: EnvironmentValue)] = [
            (variable, .secret(token.value)), ("CANOPY_PROFILE", .text(profile.text)),
        ]
        if let file { variables.append(("CANOPY_ACCESS_TOKEN_FILE", .text(file.path))) }
        do throws(SystemError) {
            process = try Execution.start(arguments, adding: variables, hearing: toldBy)
        } catch {
            Complaint(
                .failure, "\(arguments[0]) cannot be run", detail: "\(error)",
                cure: error.code == ENOENT ? "see that it is installed, and in PATH" : nil
            ).print()
            file?.remove()
            // What env(1) and every shell end with.
            exit(error.code == ENOENT ? 127 : 126)
        }
    }

    /// The signal that tells the program of a new token.
    private var toldBy: Int32? {
        switch onRotate {
        case .nothing: nil
        case .signal(let number): number
        case .restart: SIGTERM
        }
    }

    /// The status of the program if it has ended.
    private func reap() -> Int32? {
        var status: Int32 = 0
        guard waitpid(process, &status, WNOHANG) == process else { return nil }
        return Execution.exitCode(of: status)
    }

    private struct Signal {
        let number: Int32

        /// The terminal tells every program in the foreground by itself.
        let isFromTerminal: Bool
    }

    private func takeSignals() -> [Signal] {
        var entry = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
        var taken: [Signal] = []
        while poll(&entry, 1, 0) > 0 {
            // signalfd(2): 128 bytes, of which the first words are the number, errno, and si_code.
            var record = [Int32](repeating: 0, count: 32)
            guard read(signals, &record, 128) == 128 else { break }
            let kernel: Int32 = 0x80  // SI_KERNEL
            taken.append(Signal(number: record[0], isFromTerminal: record[2] == kernel))
        }
        return taken
    }

    private func wait() throws(Complaint) {
        var deadline = subscription.deadline
        if let killAt { deadline = min(deadline, killAt) }
        if let retryAt = handover.retryAt { deadline = min(deadline, retryAt) }
        let left = max(.zero, deadline - .now)
        var entries = [
            pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            pollfd(fd: subscription.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        // Rounded up, so that the last millisecond is not spent turning.
        let ready = poll(&entries, 2, Int32(clamping: left.nanoseconds / 1_000_000 + 1))
        if ready < 0, errno != EINTR {
            throw Complaint(
                .failure, "nothing can be waited for", detail: "\(SystemError.last("poll"))")
        }
    }

    // MARK: The token

    private func follow() {
        switch subscription.advance() {
        case .nothing, .lost:
            // The program goes on with what it has; canopyd is looked for again.
            break
        case .events(let events):
            for event in events {
                do throws(Complaint) {
                    if let fresh = try event.json(Freshness.init) { handover.take(fresh, handOn) }
                } catch {
                    error.print()
                }
            }
        }
        handover.retry(handOn)
    }

    private func handOn(_: Freshness) throws(Complaint) {
        let newest = try GrantedToken.of(profile)
        // First: where it fails, all of this comes again.
        try file?.write(newest.value)
        let isNew = newest.value != token.value
        token = newest
        // The first event tells of the token that the program has.
        guard isNew else { return }
        switch onRotate {
        case .nothing: break
        case .signal(let number): kill(process, number)
        case .restart:
            guard killAt == nil else { return }
            killAt = .now + .seconds(Int64(Limits.restartPatienceSeconds))
            kill(process, SIGTERM)
        }
    }

    /// In canopyd's own runtime directory, which no other user can enter and a reboot empties.
    private static func makeFile() -> TokenFile? {
        do {
            let directory = try Environment.process.runtimeDirectory
            try Directory.make(directory)
            try removeLeftovers(in: directory)
            return TokenFile(path: "\(directory)/\(prefix)\(getpid())")
        } catch {
            StandardError.say("canopyctl: CANOPY_ACCESS_TOKEN_FILE is not set (\(error))")
            return nil
        }
    }

    private static let prefix = "exec-token."

    /// Files of supervisions that were killed.
    private static func removeLeftovers(in directory: String) throws(SystemError) {
        for name in try Directory.names(directory) where name.hasPrefix(prefix) {
            let rest = name.dropFirst(prefix.count).prefix { $0 != "." }
            guard let owner = pid_t(rest), kill(owner, 0) != 0, errno == ESRCH else { continue }
            unlink("\(directory)/\(name)")
        }
    }
}
