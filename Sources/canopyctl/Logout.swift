internal import AgentCore

/// Ends the session on the server, and forgets it.
enum Logout: Command {
    static let name = "logout"
    static let summary = "end the session on the server, and forget it here"
    static let remarks = """
        Access tokens that were handed out may work until they expire. If the server cannot be
        reached nothing is forgotten; --local forgets without asking it, and the session goes on
        there until it expires or is revoked.
        """
    static let options: Options = [.profile, .local, .all]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let isLocal = arguments[flag: .local]
        guard arguments[flag: .all] else {
            try end(try arguments.profile, isLocal: isLocal)
            remind()
            return .done
        }
        guard !arguments[flag: .profile] else {
            throw arguments.usage("--all and --profile exclude each other")
        }
        return try endAll(isLocal: isLocal)
    }

    /// Goes on after a failure, and ends with the first one's exit code.
    private static func endAll(isLocal: Bool) throws(Complaint) -> ExitCode {
        let names = try Profiles.names(try Profiles.request())
        if names.isEmpty { StandardError.say("no profile is signed in") }
        var result = ExitCode.done
        var ended = 0
        for name in names {
            do throws(Complaint) {
                guard let profile = try? ProfileName(name) else {
                    throw Complaint.incomprehensible("a profile is called \(name)")
                }
                try end(profile, isLocal: isLocal)
                ended += 1
            } catch {
                error.print()
                if result == .done { result = error.exitCode }
            }
        }
        if ended > 0 { remind() }
        return result
    }

    private static func end(_ profile: ProfileName, isLocal: Bool) throws(Complaint) {
        let target = Target.profile(profile, isLocal ? "/logout?local=1" : "/logout")
        _ = try Client().send(.post, target, seconds: Limits.clientServerSeconds).expecting(204)
        StandardError.say(
            isLocal
                ? "profile \(profile) is forgotten here; the server was not told"
                : "profile \(profile) is signed out")
    }

    private static func remind() {
        StandardError.say("access tokens that were handed out may work until they expire")
    }
}
