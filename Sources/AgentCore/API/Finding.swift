/// One thing that canopyctl's doctor looked at, and what it found.
package struct Finding: Equatable, Sendable {
    package enum Verdict: String, Sendable, CaseIterable {
        case ok
        /// It works, and may not for long.
        case warning
        case failed
        /// It could not be looked at, because of another failure or on such a machine.
        case skipped
    }

    /// What was looked at; the names are part of the interface of `doctor --json`.
    package enum Check: String, Sendable, CaseIterable {
        case runtimeDirectory = "runtime_directory"
        case socket
        case daemon
        case version
        case configuration
        case stateDirectory = "state_directory"
        case exchange
        case lingering
        case systemd
        /// How the service manager runs canopyd.
        case unit
        /// How the keyring is opened where nobody logs in.
        case unsealing
        case lockedMemory = "locked_memory"
        case messageBus = "message_bus"
        case secretService = "secret_service"
        case collection
        case unlocked
        case probe
        case server
        case clock
        case profile
    }

    package let check: Check
    package let verdict: Verdict

    /// What was found, for people.
    package let detail: String

    /// The one command that mends it.
    package let fix: String?

    package init(_ check: Check, _ verdict: Verdict, _ detail: String, fix: String? = nil) {
        self.check = check
        self.verdict = verdict
        self.detail = detail
        self.fix = fix
    }

    /// Reads one from JSON; nil if it is none.
    package init?(_ value: JSONValue) {
        guard let check = value["check"]?.string.flatMap(Check.init(rawValue:)),
            let verdict = value["verdict"]?.string.flatMap(Verdict.init(rawValue:)),
            let detail = value["detail"]?.string
        else { return nil }
        self.init(check, verdict, detail, fix: value["fix"]?.string)
    }

    package func write<Sink: ByteSink & ~Copyable>(to writer: inout JSONWriter<Sink>) {
        writer.beginObject()
        writer.member("check", check.rawValue)
        writer.member("verdict", verdict.rawValue)
        writer.member("detail", detail)
        writer.member("fix", ifPresent: fix)
        writer.endObject()
    }
}
