internal import AgentCore

/// Shows canopyd, the keyring and every profile at a glance.
enum Status: Command {
    static let name = "status"
    static let summary = "show the state of canopyd, the keyring and the profiles"
    static let remarks = """
        Asks canopyd alone, never the server. The exit code says how the shown profiles are: 0
        while all can get a token, else the code that a request for a token would end with.
        """
    static let options: Options = [.profile, .json]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let only = arguments[.profile] == nil ? nil : try arguments.profile
        let response = try Client().send(
            .get, "/v1/status", seconds: Limits.requestTimeoutSeconds
        ).expecting(200)
        let report = try response.json { value throws(Complaint) in
            try StatusReport(value, only: only)
        }
        if arguments[flag: .json] {
            try response.print()
        } else {
            for line in report.lines(style: StandardOutput.style, only: only) {
                try StandardOutput.print(line)
            }
        }
        if let only, report.profiles.isEmpty {
            throw Complaint(
                .unknownProfile, "nothing is signed in as profile \(only)",
                cure: "sign in: canopyctl login --profile \(only)")
        }
        return report.exitCode
    }
}
