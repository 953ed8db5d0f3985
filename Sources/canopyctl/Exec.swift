internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Runs a program with the token in its environment.
enum Exec: Command {
    static let name = "exec"
    static let summary = "run a program with an access token in its environment"
    static let operands = "-- CMD…"
    static let remarks = """
        CMD finds the token in CANOPY_ACCESS_TOKEN, or the variable that --env names, the profile in
        CANOPY_PROFILE, and in CANOPY_ACCESS_TOKEN_FILE the path of a file that always holds the
        present token. A variable stays as it is while CMD runs: a program that outlives its token
        reads the file, or asks for a signal, or to be started again.
        The exit code is CMD's own; 126 and 127 if it cannot be run.
        """
    static let options: Options = [.profile, .environmentName, .onRotate]
    static let stopsAtOperand = true

    /// What a rotation does to the program.
    enum OnRotate {
        case nothing
        case restart
        case signal(Int32)
    }

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operandsFrom: 1, named: "the program and its arguments")
        let variable = arguments[.environmentName] ?? "CANOPY_ACCESS_TOKEN"
        guard isName(variable) else {
            throw arguments.usage("--env takes the name of a variable, not: \(variable)")
        }
        let supervision = try Supervision(
            of: arguments.operands, profile: try arguments.profile, variable: variable,
            onRotate: try onRotate(arguments))
        exit(try supervision.run())
    }

    /// IEEE 1003.1, 8.1: letters, digits and underscores, no digit first.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
        return text.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
                || $0 == UInt8(ascii: "_")
        }
    }

    private static func onRotate(_ arguments: Arguments) throws(Complaint) -> OnRotate {
        guard let text = arguments[.onRotate] else { return .nothing }
        switch text {
        case "none": return .nothing
        case "restart": return .restart
        default:
            let prefix = "signal="
            if text.hasPrefix(prefix), let number = signal(String(text.dropFirst(prefix.count))) {
                return .signal(number)
            }
            throw arguments.usage(
                "--on-rotate takes none, restart or signal=SIG, not: \(text)",
                cure: "SIG is one of "
                    + signals.map(\.name.description).joined(separator: ", "))
        }
    }

    /// The signals that programs take for news.
    private static let signals: [(name: StaticString, number: Int32)] = [
        ("HUP", SIGHUP), ("USR1", SIGUSR1), ("USR2", SIGUSR2), ("INT", SIGINT),
        ("TERM", SIGTERM), ("CONT", SIGCONT), ("WINCH", SIGWINCH),
    ]

    private static func signal(_ name: String) -> Int32? {
        let bare = name.hasPrefix("SIG") ? String(name.dropFirst(3)) : name
        return signals.first { $0.name.description == bare || String($0.number) == bare }?.number
    }
}
