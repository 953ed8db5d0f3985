internal import AgentCore

/// Prints the access token.
enum Token: Command {
    static let name = "token"
    static let summary = "print an access token that is valid for a while"
    static let options: Options = [.profile, .minimumValidity, .timeout, .json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let wantsJSON = arguments[flag: .json]
        let response = try request(arguments, accept: wantsJSON ? .json : .text)
        if wantsJSON {
            try response.print()
        } else {
            try response.printToken()
        }
        return .done
    }

    /// Asks for a token with the command line's options.
    static func request(
        _ arguments: Arguments, accept: Client.Accept
    ) throws(Complaint) -> Response {
        let timeout = try arguments.number(.timeout, 0...Limits.requestTimeoutMaximumSeconds)
        let target = Target.token(
            try arguments.profile,
            minimumValidity: try arguments.number(.minimumValidity, 0...Int(Int32.max)),
            timeout: timeout)
        return try Client().send(
            .get, target, accept: accept,
            seconds: (timeout ?? Limits.requestTimeoutSeconds) + Limits.clientGraceSeconds
        ).expecting(200)
    }
}
