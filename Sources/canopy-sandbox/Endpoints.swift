internal import AgentCore
internal import SandboxRules

/// Canopy's answers to one request at a time.
extension Canopy {
    /// The endpoint a request means, for faults; nil for what none can be planned for.
    static func endpoint(of request: HTTPRequest) -> PlannedFault.Endpoint? {
        switch request.path {
        case Path.login: .login
        case Path.refresh: .refresh
        case Path.logout: .logout
        case Path.me: .me
        case Path.sessions: .sessions
        case Path.totp, Path.recoveryCode, Path.emailSend, Path.emailVerify: .mfa
        default: nil
        }
    }

    enum Path {
        static let login = "/v1/identity/auth/login"
        static let refresh = "/v1/identity/auth/refresh"
        static let logout = "/v1/identity/auth/logout"
        static let me = "/v1/identity/auth/me"
        static let sessions = "/v1/identity/auth/sessions"
        static let totp = "/v1/identity/auth/mfa/challenge/totp"
        static let recoveryCode = "/v1/identity/auth/mfa/challenge/recovery-code"
        static let emailSend = "/v1/identity/auth/mfa/challenge/email-otp/send"
        static let emailVerify = "/v1/identity/auth/mfa/challenge/email-otp/verify"
    }

    /// Counts a refresh request at its arrival; the family whose token it presents.
    mutating func countArrival(_ request: HTTPRequest) -> FamilyID? {
        guard request.path == Path.refresh, request.method == "POST",
            let token = presentedToken(request).flatMap(mint.id(of:))
        else { return nil }
        return ledger.requestArrived(token)
    }

    /// Lets the request take effect and answers it.
    mutating func answer(_ request: HTTPRequest) -> Answer {
        switch (request.path, request.method) {
        case (Path.login, "POST"): login(request)
        case (Path.refresh, "POST"): refresh(request)
        case (Path.logout, "POST"): logOut(request)
        case (Path.me, "GET"): me(request)
        case (Path.sessions, "GET"): sessions(request)
        case (Path.totp, "POST"): challenge(request, .totp)
        case (Path.recoveryCode, "POST"): challenge(request, .recoveryCode)
        case (Path.emailVerify, "POST"): challenge(request, .emailCode)
        case (Path.emailSend, "POST"): sendEmail(request)
        case (Path.login, _), (Path.refresh, _), (Path.logout, _), (Path.me, _),
            (Path.sessions, _), (Path.totp, _), (Path.recoveryCode, _), (Path.emailVerify, _),
            (Path.emailSend, _):
            failure(request, 405, code: "http.method_not_allowed", "Method not allowed")
        case (let path, "DELETE") where path.hasPrefix(Path.sessions + "/"):
            revoke(request, row: String(path.dropFirst(Path.sessions.count + 1)))
        default:
            failure(
                request, 404, code: "http.not_found", "Cannot \(request.method) \(request.path)")
        }
    }

    // MARK: Signing in

    private mutating func login(_ request: HTTPRequest) -> Answer {
        // There is one address here: loopback.
        if let wait = ledger.signInWait(address: 0, at: now) {
            var answer = failure(
                request, 429, code: "http.too_many_requests", "Too many sign-ins, wait")
            answer.headers.append(("Retry-After", String(wait.wholeSeconds + 1)))
            return answer
        }
        let fields: [String]
        switch strings(
            request, ["publishable_key", "email", "password"],
            required: ["publishable_key", "email", "password"])
        {
        case .success(let found): fields = found.map { $0 ?? "" }
        case .failure(let refusal): return refusal.answer
        }
        let check = ledger.checkSignIn(
            key: key(fields[0]), email: fields[1], password: fields[2])
        switch check {
        case .keyRefused:
            return failure(request, 401, code: "auth.invalid_key", "Unknown or revoked key")
        case .credentialsRefused:
            return failure(
                request, 401, code: "auth.invalid_credentials", "Invalid e-mail or password")
        case .identityInactive:
            return failure(
                request, 403, code: "auth.identity_inactive", "This identity is not active")
        case .accepted(let key, let identity):
            return challenges.areRequired(of: identity)
                ? challengeAnswer(key, identity) : signIn(request, key, identity)
        }
    }

    private mutating func signIn(
        _ request: HTTPRequest, _ key: KeyID, _ identity: IdentityID
    ) -> Answer {
        let fresh = mint.refreshToken()
        guard let family = ledger.signIn(key: key, identity: identity, fresh: fresh, at: now)
        else {
            // The key was revoked, or the identity locked, while its challenge was open.
            return invalidToken(request)
        }
        return grantAnswer(family, fresh, signIn: identity)
    }

    // MARK: Second factors

    private mutating func challengeAnswer(_ key: KeyID, _ identity: IdentityID) -> Answer {
        let number = TokenMint.challenge()
        let expiresAt = challenges.open(number, key: key, identity: identity, at: now)
        return resource { json in
            json.member("requires_application_selection", false)
            json.member("requires_mfa_challenge", true)
            json.member("expires_in", 0)
            json.key("identity")
            json.beginObject()
            writeName(of: identity, to: &json)
            json.endObject()
            json.key("mfa_challenge")
            json.beginObject()
            json.member("challenge_token", Self.challengePrefix + String(number, radix: 16))
            json.key("available_factors")
            json.beginArray()
            json.string("totp")
            json.string("email_otp")
            json.endArray()
            json.member("expires_at", Timestamp.rfc3339(expiresAt))
            json.endObject()
        }
    }

    private static let challengePrefix = "cht_"

    private static func challengeNumber(_ token: String?) -> UInt64? {
        guard let token, token.hasPrefix(challengePrefix) else { return nil }
        return UInt64(token.dropFirst(challengePrefix.count), radix: 16)
    }

    private mutating func challenge(
        _ request: HTTPRequest, _ factor: SignInChallenges.Factor
    ) -> Answer {
        let fields: [String?]
        switch strings(
            request, ["challenge_token", "code"], required: ["challenge_token", "code"],
            alsoKnown: ["remember_device"])
        {
        case .success(let found): fields = found
        case .failure(let refusal): return refusal.answer
        }
        guard let number = Self.challengeNumber(fields[0]) else { return invalidToken(request) }
        switch challenges.answer(number, factor, code: fields[1] ?? "", at: now) {
        case .accepted(let key, let identity): return signIn(request, key, identity)
        case .wrongCode: return failure(request, 401, code: "mfa.invalid_code", "Invalid code")
        case .gone: return invalidToken(request)
        }
    }

    private mutating func sendEmail(_ request: HTTPRequest) -> Answer {
        let fields: [String?]
        switch strings(request, ["challenge_token"], required: ["challenge_token"]) {
        case .success(let found): fields = found
        case .failure(let refusal): return refusal.answer
        }
        guard let number = Self.challengeNumber(fields[0]) else { return invalidToken(request) }
        switch challenges.sendEmail(number, at: now) {
        case .sent: return Answer(204)
        case .gone: return invalidToken(request)
        case .tooSoon(let wait):
            var answer = failure(
                request, 429, code: "http.too_many_requests", "A code was sent already, wait")
            answer.headers.append(("Retry-After", String(wait.wholeSeconds + 1)))
            return answer
        }
    }

    // MARK: Refreshing

    /// The token in the body, else the one in the cookie.
    func presentedToken(_ request: HTTPRequest) -> String? {
        let inBody = request.body.withUnsafeBytes { bytes in
            try? JSONReader.parse(bytes)["refresh_token"]?.string
        }
        return inBody ?? request.cookie(Names.refreshCookie)
    }

    private mutating func refresh(_ request: HTTPRequest) -> Answer {
        switch strings(request, ["refresh_token"], required: []) {
        case .success: break
        case .failure(let refusal): return refusal.answer
        }
        guard let text = presentedToken(request), let token = mint.id(of: text) else {
            return invalidToken(request)
        }
        let fresh = mint.refreshToken()
        switch ledger.refresh(token, fresh: fresh, at: now) {
        case .rotated(let family, let successor), .harmlessRetry(let family, let successor):
            return grantAnswer(family, successor, signIn: nil)
        case .refused(.identityInactive):
            return failure(
                request, 403, code: "auth.identity_inactive", "This identity is not active")
        case .familyRevoked, .identityRevoked, .refused(.unknown), .refused(.ended),
            .refused(.expired):
            // Canopy prints one text for all of these, and clients cannot tell them apart.
            return invalidToken(request)
        }
    }

    /// The tokens of a session: the refresh token in the body or as a cookie, as the session
    /// has it.
    ///
    /// Of a sign-in, the identity too.
    private mutating func grantAnswer(
        _ family: FamilyID, _ token: RefreshTokenID, signIn identity: IdentityID?
    ) -> Answer {
        let delivery = ledger.delivery(of: family)
        let accessToken = accessToken(of: family)
        let text = mint.text(of: token)
        let seconds = lifetime.wholeSeconds
        var answer = resource { json in
            if let identity {
                json.member("requires_application_selection", false)
                json.member("requires_mfa_challenge", false)
                json.key("identity")
                json.beginObject()
                writeName(of: identity, to: &json)
                json.endObject()
            }
            json.member("access_token", accessToken)
            json.member("token_type", "Bearer")
            json.member("expires_in", seconds)
            if delivery == .body { json.member("refresh_token", text) }
        }
        answer.headers.append(("Cache-Control", "no-store"))
        if delivery == .cookie {
            // Not `Secure`: over plain HTTP no client would send it back.
            answer.headers.append(
                (
                    "Set-Cookie",
                    "\(Names.refreshCookie)=\(text); Path=/v1/identity/auth; HttpOnly; "
                        + "SameSite=Lax"
                ))
        }
        return answer
    }

    private func writeName(of identity: IdentityID, to json: inout JSONWriter<[UInt8]>) {
        let email = ledger.email(of: identity)
        json.member("id", Names.identity(identity))
        json.member("email", email)
        json.member("first_name", String(email.prefix { $0 != "@" }))
        json.member("last_name", "Example")
    }

    // MARK: With an access token

    private mutating func logOut(_ request: HTTPRequest) -> Answer {
        guard let grant = grant(request.bearer) else { return invalidToken(request) }
        switch strings(request, ["refresh_token"], required: []) {
        case .success: break
        case .failure(let refusal): return refusal.answer
        }
        ledger.logOut(grant.family)
        var answer = resource { $0.member("message", "Logged out") }
        if ledger.delivery(of: grant.family) == .cookie {
            answer.headers.append(
                ("Set-Cookie", "\(Names.refreshCookie)=; Path=/v1/identity/auth; Max-Age=0"))
        }
        return answer
    }

    private func me(_ request: HTTPRequest) -> Answer {
        guard let grant = grant(request.bearer) else { return invalidToken(request) }
        return resource { json in
            writeName(of: grant.identity, to: &json)
            json.member("email_verified", true)
            json.member("created_at", "2026-01-01T00:00:00Z")
        }
    }

    private func sessions(_ request: HTTPRequest) -> Answer {
        guard let grant = grant(request.bearer) else { return invalidToken(request) }
        let rows = ledger.sessions(of: grant.identity, at: now)
        var json = JSONWriter(into: [UInt8]())
        json.beginObject()
        json.key("items")
        json.beginArray()
        for row in rows {
            json.beginObject()
            json.member("id", TokenMint.row(row.id))
            json.member("created_at", Timestamp.rfc3339(row.createdAt))
            json.member("expires_at", ifPresent: row.expiresAt.map(Timestamp.rfc3339))
            json.member("ip_address", "127.0.0.1")
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return Answer(200, json: json.finish())
    }

    private mutating func revoke(_ request: HTTPRequest, row: String) -> Answer {
        guard let grant = grant(request.bearer) else { return invalidToken(request) }
        guard let id = TokenMint.id(row: row), ledger.revokeSession(row: id, of: grant.identity)
        else {
            return failure(request, 404, code: "sessions.not_found", "No such session")
        }
        return Answer(204)
    }

    // MARK: Bodies

    struct Refused: Error {
        let answer: Answer
    }

    /// The string members of the request's body, in the order of `names`; nil for absent ones.
    ///
    /// No body is an empty object.
    private func strings(
        _ request: HTTPRequest, _ names: [String], required: [String], alsoKnown: [String] = []
    ) -> Result<[String?], Refused> {
        guard !request.body.isEmpty || !required.isEmpty else {
            return .success(names.map { _ in nil })
        }
        return request.body.withUnsafeBytes { bytes in
            let root: JSONValue
            do throws(JSONFault) {
                root = try JSONReader.parse(bytes)
            } catch {
                return .failure(invalid(request, ["the body is not JSON: \(error)"]))
            }
            guard root.kind == .object else {
                return .failure(invalid(request, ["the body must be an object"]))
            }
            var complaints: [String] = []
            for name in names {
                let value = root[name]
                if value?.string == nil, value != nil || required.contains(name) {
                    complaints.append("\(name) must be a string")
                }
            }
            if wire.refusesUnknownFields {
                for (key, _) in root.members where !(names + alsoKnown).contains(key) {
                    complaints.append("property \(key) should not exist")
                }
            }
            guard complaints.isEmpty else { return .failure(invalid(request, complaints)) }
            return .success(names.map { root[$0]?.string })
        }
    }

    private func invalid(_ request: HTTPRequest, _ details: [String]) -> Refused {
        Refused(
            answer: failure(
                request, 400, code: "http.validation_failed", "Validation failed",
                details: details))
    }

    func invalidToken(_ request: HTTPRequest) -> Answer {
        failure(request, 401, code: "auth.invalid_token", "Invalid or expired token")
    }

    /// A resource's members, in `data` or bare.
    private func resource(_ members: (inout JSONWriter<[UInt8]>) -> Void) -> Answer {
        var json = JSONWriter(into: [UInt8]())
        json.beginObject()
        if wire.wrapsData {
            json.key("data")
            json.beginObject()
        }
        members(&json)
        if wire.wrapsData { json.endObject() }
        json.endObject()
        return Answer(200, json: json.finish())
    }

    /// Canopy's error body.
    func failure(
        _ request: HTTPRequest, _ status: Int, code: String, _ message: String,
        details: [String] = []
    ) -> Answer {
        var json = JSONWriter(into: [UInt8]())
        json.beginObject()
        json.key("error")
        json.beginObject()
        json.member("statusCode", Int64(status))
        json.key("code")
        if wire.codesAreNull { json.null() } else { json.string(code) }
        json.member("message", message)
        json.member("timestamp", Timestamp.rfc3339(now))
        json.member("path", request.path)
        json.member("method", request.method)
        if !details.isEmpty {
            json.key("details")
            json.beginArray()
            for detail in details { json.string(detail) }
            json.endArray()
        }
        json.endObject()
        json.endObject()
        return Answer(status, json: json.finish())
    }
}
