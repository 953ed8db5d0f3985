internal import AgentCore

/// Shows who the server says that the profile is.
enum Whoami: Command {
    static let name = "whoami"
    static let summary = "ask the server who is signed in"
    static let options: Options = [.profile, .json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let response = try Client().send(
            .get, Target.profile(try arguments.profile, "/identity"),
            seconds: Limits.clientServerSeconds
        ).expecting(200)
        if arguments[flag: .json] {
            try response.print()
            return .done
        }
        try StandardOutput.print(try response.json(words).joined(separator: "\n"))
        return .done
    }

    private static func words(_ value: JSONValue) throws(Complaint) -> [String] {
        let identity = value["identity"] ?? value
        guard let id = identity["id"]?.string else { throw .incomprehensible("it has no id") }
        var table = Table()
        table.row(["id", Plain.line(id)])
        if let email = identity["email"]?.string { table.row(["email", Plain.line(email)]) }
        let names = [identity["first_name"]?.string, identity["last_name"]?.string]
            .compactMap { $0 }.filter { !$0.isEmpty }
        if !names.isEmpty { table.row(["name", Plain.line(names.joined(separator: " "))]) }
        return table.lines
    }
}
