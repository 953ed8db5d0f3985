internal import AgentCore
internal import LinuxSystem

/// The second factor that the server asks for before it issues a session.
struct SecondFactor {
    typealias Kind = SecondFactorAnswer.Factor

    private let challenge: Secret
    private let kinds: [Kind]

    /// What the server takes and a terminal cannot give, by name.
    private let others: [String]
    private let client: Client
    private let profile: ProfileName

    /// Whether the code comes on standard input.
    private let fromInput: Bool

    /// Reads the 202 answer to a login.
    init(
        _ response: borrowing Response, client: Client, profile: ProfileName, fromInput: Bool
    ) throws(Complaint) {
        self.client = client
        self.profile = profile
        self.fromInput = fromInput
        let (challenge, offered): (Secret, [String]) = try response.json {
            value throws(Complaint) in
            guard let factors = value["mfa"]?["factors"],
                let challenge = value["mfa"]?["challenge"]?.secret(in: .locked)
            else { throw .incomprehensible("it has no challenge") }
            return (challenge, factors.elements.compactMap(\.string))
        }
        self.challenge = challenge
        // Recovery codes come with every other factor, and no server names them.
        kinds = [.totp, .emailCode].filter { offered.contains($0.rawValue) } + [.recoveryCode]
        others = offered.filter { Kind(rawValue: $0) == nil }
    }

    /// Gets a code and sends it; the answer is the profile.
    func prove(
        _ terminal: Terminal?, _ lines: inout SecretLines
    ) throws(Complaint) -> Response {
        if fromInput {
            if kinds == [.emailCode, .recoveryCode] { try sendEmail() }
            let code = try lines.next("code", option: .codeFromInput)
            return try verify(code, kind: Self.kind(of: code, among: kinds))
        }
        guard let kind = try choose(terminal) else {
            throw .usage(
                "the server asks for a second factor (\(named)), and there is no terminal to ask "
                    + "for it on",
                cure: "give the code on standard input too: --code-stdin", command: Login.name)
        }
        if kind == .emailCode {
            try sendEmail()
            try terminal?.say("A code was sent to you by email.")
        }
        guard let code = try terminal?.askSecret("Code: ", "code") else {
            throw .usage("there is no terminal", command: Login.name)
        }
        return try verify(code, kind: kind)
    }

    /// Asks which factor to use, if there is a choice; nil without a terminal.
    private func choose(_ terminal: Terminal?) throws(Complaint) -> Kind? {
        if terminal == nil { return nil }
        if !others.isEmpty {
            try terminal?.say(
                "The server would also take \(Plain.line(others.joined(separator: ", "))), which "
                    + "needs a browser.")
        }
        guard kinds.count > 1 else {
            try terminal?.say("The server asks for \(kinds[0].words).")
            return kinds[0]
        }
        try terminal?.say("The server asks for a second factor:")
        for (index, kind) in kinds.enumerated() {
            try terminal?.say("  \(index + 1)  \(kind.words)")
        }
        while true {
            let answer = try terminal?.ask("Which [1]: ") ?? ""
            if let number = answer.isEmpty ? 1 : Int(answer), kinds.indices.contains(number - 1) {
                return kinds[number - 1]
            }
            // The password was right: a slip of the hand is not to cost another sign-in.
            try terminal?.say("A number from 1 to \(kinds.count), please.")
        }
    }

    private var named: String {
        Plain.line((kinds.map(\.rawValue) + others).joined(separator: ", "))
    }

    /// Tells the factors' codes apart by their form (6 digits, 8 digits, else a recovery code).
    private static func kind(of code: Secret, among kinds: [Kind]) -> Kind {
        let (digits, others) = code.withBytes { bytes in
            let digits = bytes.count { (48...57).contains($0) }
            return (digits, bytes.count - digits)
        }
        let likely: Kind =
            switch (digits, others) {
            case (6, 0): .totp
            case (8, 0): .emailCode
            default: .recoveryCode
            }
        return kinds.contains(likely) ? likely : kinds[0]
    }

    private func sendEmail() throws(Complaint) {
        var writer = opened(.emailCode)
        writer.member("send", true)
        writer.endObject()
        _ = try client.post(
            Target.profile(profile, "/mfa"), body: writer.finish(),
            seconds: Limits.clientServerSeconds
        ).expecting(202)
    }

    private func verify(_ code: Secret, kind: Kind) throws(Complaint) -> Response {
        var writer = opened(kind)
        writer.member("code", code)
        writer.endObject()
        return try client.post(
            Target.profile(profile, "/mfa"), body: writer.finish(),
            seconds: Limits.clientServerSeconds
        ).expecting(200)
    }

    private func opened(_ kind: Kind) -> JSONWriter<SecretBuffer> {
        var writer = JSONWriter(into: SecretBuffer(capacity: 4096, in: .locked))
        writer.beginObject()
        writer.member("challenge", challenge)
        writer.member("factor", kind.rawValue)
        return writer
    }
}

extension SecondFactorAnswer.Factor {
    fileprivate var words: StaticString {
        switch self {
        case .totp: "a code from your authenticator app"
        case .recoveryCode: "a recovery code"
        case .emailCode: "a code sent to you by email"
        }
    }
}
