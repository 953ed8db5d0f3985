internal import AgentCore

/// Lists the names of the profiles, one a line, for scripts; `status` is for people.
enum Profiles: Command {
    static let name = "profiles"
    static let summary = "list the profiles, one name a line"
    static let options: Options = [.json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let response = try request()
        if arguments[flag: .json] {
            try response.print()
            return .done
        }
        let names = try names(response)
        for name in names { try StandardOutput.print(Plain.line(name)) }
        if names.isEmpty { StandardError.say("no profile is signed in; sign in: canopyctl login") }
        return .done
    }

    static func request() throws(Complaint) -> Response {
        try Client().send(.get, "/v1/profiles", seconds: Limits.requestTimeoutSeconds)
            .expecting(200)
    }

    static func names(_ response: borrowing Response) throws(Complaint) -> [String] {
        try response.json { value throws(Complaint) in
            guard let list = value["profiles"] else {
                throw .incomprehensible("it has no profiles")
            }
            return list.elements.compactMap { $0["profile"]?.string }
        }
    }
}
