internal import AgentCore
internal import LinuxSystem

/// Signs in.
enum Login: Command {
    static let name = "login"
    static let summary = "sign in to Canopy"
    static let remarks = """
        Asks on the terminal for what is missing. A password or a code is never an argument, where
        every program could read it. With both -stdin options the password is the first line of
        standard input and the code the second.
        """
    static let options: Options = [
        .profile, .url, .key, .email, .passwordFromInput, .codeFromInput, .json, .password, .code,
    ]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let profile = try arguments.profile
        let client = try Client()
        let terminal = Terminal()
        var lines = SecretLines()
        let passwordFromInput = arguments[flag: .passwordFromInput]
        if terminal == nil, !passwordFromInput {
            throw arguments.usage(
                "there is no terminal to ask for the password on",
                cure: "give it on standard input: canopyctl login --password-stdin")
        }
        var server = Server(url: arguments[.url], key: arguments[.key])
        if !passwordFromInput { try server.complete(on: terminal) }
        let email = try email(arguments, terminal)
        let password =
            passwordFromInput
            ? try lines.next("password", option: .passwordFromInput)
            : try askPassword(email, terminal)

        let response = try client.post(
            Target.profile(profile, "/login"), body: body(server, email, password),
            seconds: Limits.clientServerSeconds
        ).expecting(200, or: 202)
        if response.status == 200 {
            try tell(response, asJSON: arguments[flag: .json])
            return .done
        }
        let factor = try SecondFactor(
            response, client: client, profile: profile, fromInput: arguments[flag: .codeFromInput])
        try tell(try factor.prove(terminal, &lines), asJSON: arguments[flag: .json])
        return .done
    }

    /// Where to sign in; what is nil the daemon takes from its configuration.
    private struct Server {
        var url: String?
        var key: String?

        /// Asks for the key first: who leaves it to the configuration leaves the URL to it too,
        /// and the password must not go to another server than the one configured.
        mutating func complete(on terminal: Terminal?) throws(Complaint) {
            guard key == nil, terminal != nil else { return }
            let answer = try Login.ask(
                terminal, "Publishable key (empty: the one in canopyd.conf): ")
            guard !answer.isEmpty else { return }
            key = answer
            guard url == nil else { return }
            let place = try Login.ask(terminal, "Server [\(BaseURL.standard)]: ")
            url = place.isEmpty ? BaseURL.standard : place
        }
    }

    private static func ask(
        _ terminal: Terminal?, _ prompt: String
    ) throws(Complaint) -> String {
        guard let answer = try terminal?.ask(prompt) else { return "" }
        return answer
    }

    private static func email(
        _ arguments: Arguments, _ terminal: Terminal?
    ) throws(Complaint) -> String {
        let email: String
        if let given = arguments[.email] {
            email = given
        } else {
            email = try ask(terminal, "Email: ")
        }
        guard !email.isEmpty else {
            throw arguments.usage("no email is given", cure: "say who signs in: --email EMAIL")
        }
        return email
    }

    private static func askPassword(
        _ email: String, _ terminal: Terminal?
    ) throws(Complaint) -> Secret {
        guard
            let password = try terminal?.askSecret(
                "Password for \(Plain.line(email)): ", "password")
        else { throw .usage("there is no terminal", command: name) }
        return password
    }

    private static func body(
        _ server: Server, _ email: String, _ password: Secret
    ) -> SecretBuffer {
        var writer = JSONWriter(into: SecretBuffer(capacity: 4096, in: .locked))
        writer.beginObject()
        writer.member("url", ifPresent: server.url)
        writer.member("publishable_key", ifPresent: server.key)
        writer.member("email", email)
        writer.member("password", password)
        writer.endObject()
        return writer.finish()
    }

    /// Says who is signed in, and for how long the first access token is good.
    private static func tell(
        _ response: borrowing Response, asJSON: Bool
    ) throws(Complaint) {
        if asJSON { return try response.print() }
        let words: String = try response.json { value throws(Complaint) in
            guard let profile = value["profile"]?.string,
                let email = value["identity"]?["email"]?.string
            else { throw .incomprehensible("it does not say who is signed in") }
            let left = Countdown.seconds(to: value["expires_at"]?.string)
            let expiry = left.map {
                "; the access token expires in \(Countdown.words(seconds: $0)), "
                    + "and canopyd renews it before"
            }
            return "signed in as \(email), profile \(profile)\(expiry ?? "")"
        }
        StandardError.say(Plain.line(words))
    }
}
