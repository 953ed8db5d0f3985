internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

@main
enum Canopyd {
    static func main() {
        let options: Options
        do throws(Options.Misuse) {
            options = try Options.parse()
        } catch {
            complain("\(error.text)\nTry 'canopyd --help'.")
            exit(2)
        }
        let configuration = configuration(options)
        switch options.action {
        case .showHelp:
            show(Options.usage)
        case .showVersion:
            show("canopyd \(Version.text)\n")
        case .checkConfiguration:
            exit(check(configuration) ? 0 : 1)
        case .serve:
            break
        }
        do {
            try harden()
            let settings = try initialSettings(configuration)
            try serve(options, configuration, settings)
        } catch {
            complain("\(error)")
            exit(1)
        }
    }

    /// A failure at the start, with all that there is to say.
    private struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    // MARK: Before serving

    /// Nothing that we hold gets into a core dump, a file that others read, or another process.
    private static func harden() throws {
        // A descriptor of ours below 3 would get what some library writes to standard error.
        while case let descriptor = clinux_open("/dev/null", O_RDWR, 0), descriptor >= 0 {
            guard descriptor <= STDERR_FILENO else {
                close(descriptor)
                break
            }
        }
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        guard setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none) == 0 else {
            throw SystemError.last("setrlimit", "RLIMIT_CORE")
        }
        guard clinux_set_dumpable(0) == 0 else { throw SystemError.last("prctl") }
        Hardening.leaveCrashesToTheKernel()
        umask(0o077)
        _ = clinux_overwrite_freed_memory()
        if let shortage = try DescriptorLimit.raise() {
            throw Unusable(description: "\(shortage); \(DescriptorLimit.Shortage.remedy)")
        }
        // Whoever reads our log may go away.
        signal(SIGPIPE, SIG_IGN)
        // They mean nothing here, and would end us: a script that wakes up every daemon of the
        // user's with one is not to take the tokens away. An exchange starts with the defaults.
        signal(SIGUSR1, SIG_IGN)
        signal(SIGUSR2, SIG_IGN)
        // In the background of a terminal that is set so (stty tostop), the first line for the log would
        // stop us, and everybody who asks. Ignored, it is written.
        signal(SIGTTOU, SIG_IGN)
        // What our log is written to may have reached its limit (RLIMIT_FSIZE).
        signal(SIGXFSZ, SIG_IGN)
        // Whoever started us may ignore it, which is inherited: our children would be gone before we
        // can ask how they ended.
        signal(SIGCHLD, SIG_DFL)
        // sd-event takes these from a descriptor.
        var taken = sigset_t()
        sigemptyset(&taken)
        for number in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] { sigaddset(&taken, number) }
        guard sigprocmask(SIG_BLOCK, &taken, nil) == 0 else {
            throw SystemError.last("sigprocmask")
        }
    }

    private static func configuration(_ options: Options) -> Configuration {
        Configuration(
            path: options.configuration ?? (try? Environment.process.configurationFile),
            isNamed: options.configuration != nil, logLevel: options.logLevel)
    }

    private static func check(_ configuration: Configuration) -> Bool {
        switch configuration.read() {
        case .read(_, let warnings):
            for warning in warnings { complain("warning: \(warning)") }
            return true
        case .lacking(_, let warnings, let fault):
            for warning in warnings { complain("warning: \(warning)") }
            complain(fault)
            return false
        case .unusable(let errors):
            for error in errors { complain(error) }
            return false
        }
    }

    private static func initialSettings(_ configuration: Configuration) throws -> Settings {
        switch configuration.read() {
        case .read(let settings, let warnings):
            Journal.write(upTo: configuration.logLevel ?? settings.logLevel)
            for warning in warnings {
                Journal.write(.configurationIgnored, (.line, warning))
            }
            return settings
        case .lacking(let settings, let warnings, let fault):
            Journal.write(upTo: configuration.logLevel ?? settings.logLevel)
            for warning in warnings + [fault] {
                Journal.write(.configurationIgnored, (.line, warning))
            }
            return settings
        case .unusable(let errors):
            throw Unusable(description: errors.joined(separator: "\n"))
        }
    }

    private static func listeningSocket(
        _ options: Options, _ activation: SocketActivation
    ) throws -> (ListeningSocket, RuntimeDirectoryClaim) {
        if let inherited = activation.agent {
            return (ListeningSocket(inherited: inherited), try RuntimeDirectoryClaim())
        }
        do {
            let path = try options.socket ?? Environment.process.agentSocketPath
            // For a path that cannot be used nothing is made.
            let address = try SocketAddress(path: path)
            let claim = try RuntimeDirectoryClaim()
            return (try ListeningSocket(at: address), claim)
        } catch let error as SocketAddress.Unusable {
            throw Unusable(description: "\(error); \(error.remedy)")
        } catch let error as Environment.Unusable {
            throw Unusable(description: "\(error); \(error.remedy)")
        }
    }

    private static func place() throws -> Place {
        let machine = try MachineID.forKeyring()
        let runtimeDirectory = try? Environment.process.runtimeDirectory
        do {
            return Place(
                executable: try ExchangeExecutable.find(),
                stateDirectory: StateDirectory(
                    path: try Environment.process.stateDirectory + "/" + machine,
                    // Marks outlive the boot in the state directory; without a runtime directory
                    // they are kept there alone.
                    runtimePath: runtimeDirectory.map { $0 + "/marks" }),
                machine: machine, boot: try MachineID.boot(),
                noticeRecord: runtimeDirectory.map { $0 + "/notice.json" })
        } catch let error as Environment.Unusable {
            throw Unusable(description: "\(error); \(error.remedy)")
        }
    }

    // MARK: Serving

    private static func serve(
        _ options: Options, _ configuration: Configuration, _ settings: Settings
    ) throws {
        MemoryWarning.arm()
        let activation = try SocketActivation.take()
        let (socket, runtimeDirectory) = try listeningSocket(options, activation)
        let loop = try EventLoop()
        try loop.answerWatchdog()
        Environment.process.nameSessionBus()
        let agent = Agent(
            try place(), settings: settings, configurationFile: configuration.path, loop: loop,
            inherited: DescriptorStore.slots(among: activation.stored))
        let connections = Connections(loop, agent)
        let credentials = try activation.credential.map { descriptor throws(SystemError) in
            try CredentialSocket(inherited: descriptor, loop, agent)
        }
        // It holds the agent, and so may the agent not hold it.
        agent.deliver = { [unowned connections, weak credentials] client, reply in
            if credentials?.deliver(client, reply) == true { return }
            connections.deliver(client, reply)
        }
        agent.subscribers.publish = { [unowned connections] in
            connections.publish($0, $1, coalescingKey: $2)
        }
        agent.caller = { [unowned connections, weak credentials] client in
            if let one = credentials?.caller(of: client) { return one }
            return connections.caller(of: client).map { ($0, .request) }
        }
        agent.connections = { [unowned connections] in connections.count }
        agent.statistics = { [unowned connections] in connections.statistics }
        let listener = try Listener(
            socket, in: runtimeDirectory, limit: settings.connections, loop, connections)

        var stopping: BootTime?
        let stop = {
            guard stopping == nil else { return }
            stopping = .now
            Notifier.stopping()
            Journal.write(.stopping)
            listener.stop()
            credentials?.stop()
            agent.stop(at: .now)
            connections.stop()
        }
        let terminate = try loop.watch(signal: SIGTERM, stop)
        let interrupt = try loop.watch(signal: SIGINT, stop)
        let hangUp = try loop.watch(signal: SIGHUP) {
            reload(configuration, agent, listener)
        }

        var told = ""
        agent.onChange = { [unowned agent] in
            let status = summary(of: agent.census(at: .now))
            guard status != told, stopping == nil else { return }
            told = status
            Notifier.status(status)
        }
        agent.start(at: .now)
        Notifier.ready("Serving")
        Journal.write(.serving, (.version, Version.text))
        try loop.run { isDue in
            connections.serveReady()
            if isDue {
                let now = Moment.now
                connections.wake(at: now.boot)
                listener.wake(at: now.boot)
                credentials?.wake(at: now.boot)
                if let wakeUp = agent.prepareToWait(), wakeUp <= now.boot { agent.wake(at: now) }
            }
            let wakeUp = earlier(
                earlier(connections.wakeUp, listener.wakeUp),
                earlier(credentials?.wakeUp, agent.prepareToWait()))
            guard let began = stopping else { return (wakeUp, connections.hasWork) }
            // Answers that are on their way get a moment to arrive.
            let end = began + .seconds(Int64(Limits.stopSeconds))
            let isSending = connections.isSending || credentials?.isSending == true
            if agent.isIdle, !isSending || end <= .now { loop.stop() }
            return (agent.isIdle ? earlier(wakeUp, end) : wakeUp, connections.hasWork)
        }
        withExtendedLifetime((terminate, interrupt, hangUp, listener, connections, credentials)) {}
        agent.releaseEmptySlots()
        for profile in agent.unstored {
            Journal.write(.stoppedUnstored, (.profile, profile.text))
        }
        Journal.write(.stopped)
    }

    private static func reload(
        _ configuration: Configuration, _ agent: Agent, _ listener: Listener
    ) {
        Notifier.reloading()
        switch configuration.read() {
        case .read(let settings, let warnings):
            Journal.write(upTo: configuration.logLevel ?? settings.logLevel)
            for warning in warnings {
                Journal.write(.configurationIgnored, (.line, warning))
            }
            listener.limit = settings.connections
            agent.settings = settings
            Journal.write(.configurationRead)
        case .lacking(_, _, let fault):
            Journal.write(.configurationBad, (.line, fault))
        case .unusable(let errors):
            for error in errors {
                Journal.write(.configurationBad, (.line, error))
            }
        }
        Notifier.ready(summary(of: agent.census(at: .now)))
    }

    /// A sentence about all profiles, for `systemctl status`.
    private static func summary(
        of profiles: [ProfileState: (count: Int, one: ProfileName)]
    ) -> String {
        guard !profiles.isEmpty else { return "Serving; nothing is signed in" }
        let states = ProfileState.allCases.compactMap { state in
            profiles[state].map { count, one in
                "\(state.rawValue): \(count == 1 ? one.text : "\(count) profiles")"
            }
        }
        return "Serving; " + states.joined(separator: ", ")
    }

    // MARK: Words

    /// Writes the text to standard output, and ends.
    private static func show(_ text: String) -> Never {
        do throws(SystemError) {
            try StandardOutput.write(text)
            exit(0)
        } catch {
            complain("\(error)")
            exit(1)
        }
    }

    private static func complain(_ text: String) {
        _ = "canopyd: \(text)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }
}
