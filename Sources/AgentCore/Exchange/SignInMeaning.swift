/// What Canopy's answer to a sign-in means.
///
/// Nothing here is ever tried again by itself: passwords and codes are throttled, and five wrong
/// ones lock an address out for 15 minutes.
package enum SignInMeaning: Sendable {
    /// Signed in with a native key.
    case granted(Grant, Identity)
    /// Signed in with a key that delivers by cookie: the access token ends the useless session.
    case notNative(accessToken: Secret?)
    /// A second factor is wanted.
    case challenged(token: Secret, factors: [String], expiresAt: WallTime)
    /// Any 4xx with the envelope.
    case rejected(String)
    case failed(Failure)

    /// `sent` is when the request was sent, and the answer's lifetimes count from then.
    package init(_ transmission: Transmission, sent: Stamp, now: Moment, memory: SecretMemory) {
        switch transmission {
        case .notSent(let detail):
            self = .failed(Failure(.notPresented, detail))
        case .lost(let detail):
            self = .failed(Failure(.noAnswer, detail))
        case .answered(let answer):
            self = answer.body.withBytes { bytes in
                SignInMeaning(
                    answer, CanopyBody(bytes, of: answer), sent: sent, now: now,
                    memory: memory)
            }
        }
    }

    private init(
        _ answer: CanopyAnswer, _ body: CanopyBody, sent: Stamp, now: Moment, memory: SecretMemory
    ) {
        let words = body.words ?? "HTTP status \(answer.status)"
        switch answer.status {
        case 200..<300:
            if let grant = Grant(answer, body, sent: sent, memory: memory) {
                self = .granted(grant, grant.identity ?? Identity(id: "", email: ""))
            } else if body.wantsSecondFactor {
                self = SignInMeaning(challengeIn: body, now: now, memory: memory)
            } else if body.hasAccessToken {
                self = .notNative(accessToken: body.token("access_token", in: memory))
            } else {
                self = .failed(
                    Failure(
                        .serverError,
                        "the server answered \(answer.status) with a body that is not Canopy's"))
            }
        case 429:
            self = .failed(Failure(.throttled, words, wait: answer.waitTold(at: now)))
        case 400..<500 where body.isEnvelope:
            self = .rejected(
                body.areWordsWithheld
                    ? "\(SignInMeaning.cause(answer.status, body.code)) \(words)" : words)
        case 408, 500..<600:
            self = .failed(
                Failure(.serverError, "the server answered \(answer.status): \(words)"))
        default:
            self = .failed(
                Failure(
                    .somebodyInBetween,
                    "HTTP status \(answer.status) that is not Canopy's: captive portal or proxy?"))
        }
    }

    /// What a refusal is for, where the server's own words cannot be shown: by its code, and where that is none
    /// that is known, by its status.
    private static func cause(_ status: Int, _ code: String?) -> String {
        let told = code.map { "\(status), \($0)" } ?? "\(status)"
        return switch (code, status) {
        case ("auth.invalid_credentials", _): "the email address or the password is wrong (\(told))"
        case ("mfa.invalid_code", _): "the code is wrong (\(told))"
        case (_, 401): "the email address, the password, the code or the key is wrong (\(told))"
        case (_, _): "the server refuses the sign-in (\(told))"
        }
    }

    private init(challengeIn body: CanopyBody, now: Moment, memory: SecretMemory) {
        guard let token = body.challengeToken(in: memory) else {
            self = .failed(
                Failure(
                    .serverError,
                    "the server asks for a second factor without a challenge to answer"))
            return
        }
        let latest = now.wall + .seconds(Int64(Limits.challengeSeconds))
        self = .challenged(
            token: token, factors: body.challengeFactors,
            // By our clock, which may be wrong: a challenge that seems over is tried all the same.
            expiresAt: body.challengeExpiry.map { $0 > now.wall ? min($0, latest) : latest }
                ?? latest)
    }
}
