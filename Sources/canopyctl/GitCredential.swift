internal import AgentCore
internal import LinuxSystem

/// Speaks git's credential protocol (gitcredentials(7)).
enum GitCredential: Command {
    static let name = "git-credential"
    static let summary = "answer git as a credential helper"
    static let operands = "get|store|erase"
    static let remarks = """
        Set it up for the servers that the token is for, and for no other:
          git config --global credential.https://git.example.com.helper '!canopyctl git-credential'
        git's own wishes to store or erase change nothing: canopyd keeps the session.
        """
    static let options: Options = [.profile, .username]

    /// The name under which git looks for `helper = canopy`.
    static let program = "git-credential-canopy"

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 1, named: "get, store or erase")
        let profile = try arguments.profile
        switch arguments.operands[0] {
        case "get":
            try answer(try Request(try StandardInput.readAll()), profile, arguments)
        case "store", "erase":
            _ = try StandardInput.readAll()
        default:
            // gitcredentials(7): a helper ignores what it does not know.
            break
        }
        return .done
    }

    /// What git says of the server that it wants a credential for.
    private struct Request {
        private(set) var username: String?
        private var scheme = ""
        private var host = ""

        init(_ input: Secret) throws(Complaint) {
            let text = input.withBytes { String(decoding: $0, as: UTF8.self) }
            for line in text.split(separator: "\n") {
                guard let equals = line.firstIndex(of: "=") else { continue }
                let value = String(line[line.index(after: equals)...])
                switch line[..<equals] {
                case "protocol": scheme = value
                case "host": host = value
                case "username": username = value.isEmpty ? nil : value
                default: break
                }
            }
        }

        var isComplete: Bool { !scheme.isEmpty && !host.isEmpty }

        var server: TokenDestination { TokenDestination(url: "\(scheme)://\(host)") }
    }

    private static func answer(
        _ request: Request, _ profile: ProfileName, _ arguments: Arguments
    ) throws(Complaint) {
        guard request.isComplete else {
            throw Complaint(
                .failure, "standard input does not say which server the credential is for",
                cure: "it is git that runs this: see canopyctl git-credential --help")
        }
        try request.server.check()
        let token = try GrantedToken.of(profile)
        var text = SecretBuffer(capacity: token.value.count + 128, in: .locked)
        text.append("username=")
        text.append(request.username ?? arguments[.username] ?? Username.standard)
        text.append("\npassword=")
        text.append(token.value)
        text.append("\npassword_expiry_utc=\(token.expiresAt.milliseconds / 1000)\n")
        try StandardOutput.write(text.secret())
    }
}

/// The name that goes with a token where a protocol insists on one.
enum Username {
    /// What most servers that take an OAuth token as a password expect, or ignore.
    static let standard = "oauth2"
}
