internal import AgentCore

/// Why a command cannot go on: what is wrong, how to mend it, and the exit code that says so.
struct Complaint: Error {
    let exitCode: ExitCode

    /// What is wrong, as the rest of a line that begins with the program's name.
    let what: String

    /// The cause in somebody else's words: the daemon's, the server's or the kernel's.
    let detail: String?

    /// What to do about it, as the rest of a line after a semicolon.
    let cure: String?

    init(_ exitCode: ExitCode, _ what: String, detail: String? = nil, cure: String? = nil) {
        self.exitCode = exitCode
        self.what = what
        self.detail = detail
        self.cure = cure
    }

    /// A mistake on the command line of `command`.
    static func usage(_ what: String, cure: String? = nil, command: String? = nil) -> Complaint {
        let help = command.map { "canopyctl \($0) --help" } ?? "canopyctl --help"
        return Complaint(.usage, what, cure: cure ?? "see: \(help)")
    }

    /// An answer of canopyd that its interface does not have.
    static func incomprehensible(_ what: String) -> Complaint {
        Complaint(
            .failure, "canopyd's answer cannot be used", detail: what,
            cure: "canopyd and canopyctl may be of different versions: "
                + "compare canopyd --version and canopyctl --version")
    }

    /// What is wrong, why, and what to do: one line, so that a tool or a log that passes on a line
    /// of ours passes on the cure as well.
    var line: String {
        var line = what
        if let detail, !detail.isEmpty { line += " (\(detail))" }
        if let cure { line += "; \(cure)" }
        return Plain.line(line)
    }

    /// Tells the user on standard error.
    func print() {
        StandardError.say(StandardError.style.alarming("canopyctl:") + " " + line)
    }
}
