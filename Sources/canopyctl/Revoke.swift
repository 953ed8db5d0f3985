internal import AgentCore

/// Ends one session of this identity on the server.
enum Revoke: Command {
    static let name = "revoke"
    static let summary = "end one of this identity's sessions"
    static let operands = "ID"
    static let remarks = "The ids are those of: canopyctl sessions"
    static let options: Options = [.profile]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 1, named: "the session's ID")
        let id = arguments.operands[0]
        guard !id.isEmpty else { throw arguments.usage("the session's ID is empty") }
        _ = try Client().send(
            .delete, Target.profile(try arguments.profile, "/sessions/" + Target.escape(id)),
            seconds: Limits.clientServerSeconds
        ).expecting(204)
        StandardError.say("session \(Plain.line(id)) is revoked")
        return .done
    }
}
