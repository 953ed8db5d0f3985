internal import AgentCore

/// Lists the identity's sessions on the server.
enum Sessions: Command {
    static let name = "sessions"
    static let summary = "list this identity's sessions on the server"
    static let options: Options = [.profile, .json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let response = try Client().send(
            .get, Target.profile(try arguments.profile, "/sessions"),
            seconds: Limits.clientServerSeconds
        ).expecting(200)
        if arguments[flag: .json] {
            try response.print()
            return .done
        }
        try StandardOutput.print(try response.json(lines).joined(separator: "\n"))
        return .done
    }

    private static func lines(_ value: JSONValue) throws(Complaint) -> [String] {
        guard let sessions = value["sessions"] else {
            throw .incomprehensible("it has no sessions")
        }
        var table = Table()
        table.row(["ID", "CREATED", "EXPIRES", "ADDRESS", "PROGRAM"])
        for session in sessions.elements {
            table.row([
                cell(session["id"]), cell(session["created_at"]), cell(session["expires_at"]),
                cell(session["ip_address"]), cell(session["user_agent"]),
            ])
        }
        return table.lines
    }

    private static func cell(_ value: JSONValue?) -> String {
        value?.string.map(Plain.line) ?? "–"
    }
}
