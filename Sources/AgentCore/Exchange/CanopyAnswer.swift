/// An answer of the server, as far as anything depends on it.
package struct CanopyAnswer: Sendable {
    package let status: Int
    package let retryAfter: String?
    package let date: String?
    package let body: Secret

    /// The secrets of the request that it answers: a server or a proxy may repeat what it got.
    package let secrets: [Secret]

    /// Whether the body is longer than is read, and ``body`` the beginning of it.
    package let isCutOff: Bool

    package init(
        status: Int, retryAfter: String?, date: String?, body: Secret, secrets: [Secret] = [],
        isCutOff: Bool = false
    ) {
        self.status = status
        self.retryAfter = retryAfter
        self.date = date
        self.body = body
        self.secrets = secrets
        self.isCutOff = isCutOff
    }

    /// Whether it says that all went well, and all of it is there, whatever became of the connection
    /// then: an object ends with its brace.
    package var isWholeSuccess: Bool {
        guard (200..<300).contains(status) else { return false }
        return body.withBytes { bytes in
            let body = CanopyBody(bytes, of: self)
            guard !isCutOff else { return body.hasRefreshToken }
            // A successor is one whatever else stands beside it.
            return body.isAnswer || body.hasRefreshToken
        }
    }
}

/// How sending one request ended.
package enum Transmission: Sendable {
    /// It never left: resolving, connecting or TLS failed. The text says which, for people.
    case notSent(String)
    /// It was sent, and no whole answer came.
    case lost(String)
    case answered(CanopyAnswer)
}

/// What Canopy's answer to a refresh means (ROTATION, "What an answer means"; the first row that
/// fits wins).
package enum RefreshMeaning: Sendable {
    case notPresented(String)
    /// A 2xx with a readable refresh token, whatever else is wrong with it.
    case rotated(Grant)
    /// A 2xx and a Canopy body, without a refresh token.
    case notNative
    /// 401 with the envelope: these bytes are dead.
    case verdict(String)
    /// 429; nil without a `Retry-After` that makes sense.
    case toldToWait(TimeSpan?, String)
    /// 503 with `Retry-After` or in Canopy's own words: told to wait, perhaps rotated. nil without a
    /// `Retry-After` that makes sense.
    case unavailable(TimeSpan?, String)
    /// Whether the token was spent is not known.
    case ambiguous(Failure)
    /// Any other 4xx with the envelope.
    case refused(String)

    /// `sent` is when the request was sent, and the answer's lifetimes count from then.
    package init(_ transmission: Transmission, sent: Stamp, now: Moment, memory: SecretMemory) {
        switch transmission {
        case .notSent(let detail):
            self = .notPresented(detail)
        case .lost(let detail):
            self = .ambiguous(Failure(.noAnswer, detail))
        case .answered(let answer):
            self = answer.body.withBytes { bytes in
                RefreshMeaning(
                    answer, CanopyBody(bytes, of: answer), sent: sent, now: now,
                    memory: memory)
            }
        }
    }

    private init(
        _ answer: CanopyAnswer, _ body: CanopyBody, sent: Stamp, now: Moment, memory: SecretMemory
    ) {
        let wait = answer.waitTold(at: now)
        let words = body.words ?? "HTTP status \(answer.status)"
        switch answer.status {
        case 200..<300:
            if let grant = Grant(answer, body, sent: sent, memory: memory) {
                self = .rotated(grant)
            } else if body.hasAccessToken, !body.hasRefreshToken {
                self = .notNative
            } else {
                self = .ambiguous(
                    Failure(
                        .serverError,
                        "the server answered \(answer.status) with a body that is not Canopy's"))
            }
        case 401 where body.isEnvelope:
            self = .verdict(words)
        case 429:
            self = .toldToWait(wait, words)
        case 503 where wait != nil || body.isEnvelope:
            self = .unavailable(wait, words)
        case 408, 500..<600:
            self = .ambiguous(
                Failure(.serverError, "the server answered \(answer.status): \(words)"))
        case 400..<500 where body.isEnvelope:
            let code = body.code.map { ", \($0)" } ?? ""
            self = .refused("\(words) (\(answer.status)\(code))")
        case 300..<500:
            self = .ambiguous(
                Failure(
                    .somebodyInBetween,
                    "HTTP status \(answer.status) that is not Canopy's: captive portal or proxy?"))
        default:
            self = .ambiguous(
                Failure(.serverError, "the server answered with HTTP status \(answer.status)"))
        }
    }
}

extension CanopyAnswer {
    /// `Retry-After` in seconds or as a date, measured against the server's own `Date` where it
    /// sent one: our clock may be wrong.
    ///
    /// nil without one that makes sense.
    package func waitTold(at now: Moment) -> TimeSpan? {
        guard let retryAfter else { return nil }
        if let seconds = Int64(retryAfter) {
            return seconds >= 0 ? .seconds(min(seconds, Limits.retryAfterSeconds)) : nil
        }
        guard let until = Timestamp.http(retryAfter) else { return nil }
        let from = date.flatMap(Timestamp.http) ?? now.wall
        return max(.zero, until - from)
    }
}

/// A refresh token and what came with it.
package struct Grant: Sendable {
    package let refreshToken: Secret
    package let accessToken: AccessToken?
    /// Present in answers to a sign-in.
    package let identity: Identity?

    package init(refreshToken: Secret, accessToken: AccessToken?, identity: Identity?) {
        self.refreshToken = refreshToken
        self.accessToken = accessToken
        self.identity = identity
    }

    /// Returns nil if no refresh token can be read.
    package init?(_ answer: CanopyAnswer, _ body: CanopyBody, sent: Stamp, memory: SecretMemory) {
        guard let refreshToken = body.token("refresh_token", in: memory) else { return nil }
        self.refreshToken = refreshToken
        identity = body.identity
        guard let value = body.token("access_token", in: memory) else {
            accessToken = nil
            return
        }
        let claims = JWTClaims(value, in: memory)
        guard let lifetime = body.lifetime ?? claims?.lifetime else {
            accessToken = nil
            return
        }
        // Without a Date the token's own `iat` says what time it is there. Both are whole seconds,
        // rounded down, as is `exp`: its clock may be ahead of what it says by a second.
        let told = answer.date.flatMap(Timestamp.http) ?? claims?.issuedAt
        let serverTime = told.map { $0 + .seconds(1) }
        accessToken = AccessToken(
            value: value, type: body.tokenType ?? "Bearer",
            life: AccessTokenLife(
                lifetime: lifetime, sent: sent, expiry: claims?.expiry,
                serverClockOffset: serverTime.map { $0 - sent.moment.wall }))
    }
}
