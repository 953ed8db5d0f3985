/// What the body of an MFA request says (INTERFACE): a code, or the wish for an email with one.
package struct SecondFactorAnswer: Sendable {
    /// The factors that can be proved without a browser.
    package enum Factor: String, Sendable, CaseIterable {
        case totp
        case recoveryCode = "recovery_code"
        case emailCode = "email_otp"
    }

    package enum Step: Sendable {
        case prove(Factor, code: Secret)
        case sendEmail
    }

    /// The challenge that it answers, as canopyd named it.
    package let challenge: SignInID
    package let step: Step

    package enum Malformed: Error, Equatable, Sendable, CustomStringConvertible {
        case notAnObject
        case challenge
        case factor
        case code
        case send

        package var description: String {
            switch self {
            case .notAnObject:
                "the body must be a JSON object with challenge, factor and code"
            case .challenge:
                "the body's \"challenge\" must be the one that the login's answer named"
            case .factor:
                "the body's \"factor\" must be totp, recovery_code or email_otp"
            case .code:
                "the body's \"code\" must be a string of 1 to \(Limits.secondFactorCodeBytes) bytes"
            case .send:
                "\"send\" must be true or left out, and only an email_otp can be sent"
            }
        }
    }

    package init(parsing body: Secret, in memory: SecretMemory) throws(Malformed) {
        let parsed = body.withBytes { bytes -> Result<SecondFactorAnswer, Malformed> in
            Result { () throws(Malformed) in try SecondFactorAnswer(bytes, memory) }
        }
        self = try parsed.get()
    }

    private init(_ bytes: UnsafeRawBufferPointer, _ memory: SecretMemory) throws(Malformed) {
        let root: JSONValue
        do throws(JSONFault) {
            root = try JSONReader.parse(bytes)
        } catch {
            throw .notAnObject
        }
        guard root.kind == .object else { throw .notAnObject }
        guard let challenge = root["challenge"]?.string.flatMap(SignInID.init) else {
            throw .challenge
        }
        guard let factor = root["factor"]?.string.flatMap(Factor.init(rawValue:)) else {
            throw .factor
        }
        self.challenge = challenge
        if let send = root["send"], !send.isNull, send.bool != false {
            guard send.bool == true, factor == .emailCode else { throw .send }
            step = .sendEmail
            return
        }
        guard let code = root["code"]?.secret(in: memory),
            (1...Limits.secondFactorCodeBytes).contains(code.count)
        else { throw .code }
        step = .prove(factor, code: code)
    }
}
