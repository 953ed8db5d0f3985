internal import AgentCore

/// Rotates now.
enum Refresh: Command {
    static let name = "refresh"
    static let summary = "rotate the profile's tokens now"
    static let remarks = """
        With --if-generation nothing happens if the profile has rotated since: what to do when a
        server rejected the token of that generation. Right after a rotation the current token is
        the answer. --json prints the token object, and so the token.
        """
    static let options: Options = [.profile, .ifGeneration, .timeout, .json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let timeout = try arguments.number(.timeout, 0...Limits.requestTimeoutMaximumSeconds)
        let generation = try arguments.number(.ifGeneration, 0...Int.max)
        let profile = try arguments.profile
        var query: [String] = []
        if let timeout { query.append("timeout=\(timeout)") }
        if let generation { query.append("if_generation=\(generation)") }
        let rest = query.isEmpty ? "" : "?" + query.joined(separator: "&")
        let response = try Client().send(
            .post, Target.profile(profile, "/refresh" + rest),
            seconds: (timeout ?? Limits.requestTimeoutSeconds) + Limits.clientGraceSeconds
        ).expecting(200)
        if arguments[flag: .json] {
            try response.print()
            return .done
        }
        let words: String = try response.json { value throws(Complaint) in
            guard let generation = value["generation"]?.int else {
                throw .incomprehensible("it has no generation")
            }
            let left = Countdown.seconds(to: value["expires_at"]?.string)
            let expiry = left.map {
                "; its access token expires in \(Countdown.words(seconds: $0))"
            }
            return "profile \(profile) is at generation \(generation)\(expiry ?? "")"
        }
        StandardError.say(words)
        return .done
    }
}
