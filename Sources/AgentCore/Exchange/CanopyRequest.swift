/// One request to Canopy, as it goes over the wire.
package struct CanopyRequest: Sendable {
    package enum Method: Sendable {
        case get
        case post
        case delete
    }

    package let method: Method
    package let url: String

    /// The JSON body of a POST.
    package let body: Secret?

    /// Goes into the `Authorization` header.
    package let accessToken: Secret?

    /// Every secret that it carries, to be known again if an answer repeats it.
    package let secrets: [Secret]

    /// The field that carries the token of a native refresh.
    ///
    /// Written down nowhere by the vendor; the first thing to check against a real tenant.
    private static let refreshTokenField: StaticString = "refresh_token"

    private static let root = "/v1/identity/auth"

    private init(
        _ method: Method, _ base: BaseURL, _ path: String, body: Secret? = nil,
        accessToken: Secret? = nil, secrets: [Secret]
    ) {
        self.method = method
        url = base.text + CanopyRequest.root + path
        self.body = body
        self.accessToken = accessToken
        self.secrets = secrets
    }

    /// Presents a refresh token: no publishable key, no cookie, no `Authorization`.
    package static func refresh(
        _ refreshToken: Secret, at base: BaseURL, memory: SecretMemory
    ) -> CanopyRequest {
        let body = object(in: memory, capacity: refreshToken.count + 64) { writer in
            writer.member(refreshTokenField, refreshToken)
        }
        return CanopyRequest(.post, base, "/refresh", body: body, secrets: [refreshToken])
    }

    package static func signIn(
        _ credentials: Credentials, publishableKey: String, at base: BaseURL, memory: SecretMemory
    ) -> CanopyRequest {
        let body = object(in: memory, capacity: 512) { writer in
            writer.member("publishable_key", publishableKey)
            writer.member("email", credentials.email)
            writer.member("password", credentials.password)
        }
        return CanopyRequest(.post, base, "/login", body: body, secrets: [credentials.password])
    }

    /// Proves a second factor; answered like a sign-in.
    package static func prove(
        _ factor: SecondFactorAnswer.Factor, code: Secret, challenge: Secret, at base: BaseURL,
        memory: SecretMemory
    ) -> CanopyRequest {
        let path =
            switch factor {
            case .totp: "/totp"
            case .recoveryCode: "/recovery-code"
            case .emailCode: "/email-otp/verify"
            }
        let body = object(in: memory, capacity: challenge.count + code.count + 64) { writer in
            writer.member("challenge_token", challenge)
            writer.member("code", code)
        }
        return CanopyRequest(
            .post, base, "/mfa/challenge" + path, body: body, secrets: [challenge, code])
    }

    /// Asks for an email with a code.
    package static func sendEmailCode(
        challenge: Secret, at base: BaseURL, memory: SecretMemory
    ) -> CanopyRequest {
        let body = object(in: memory, capacity: challenge.count + 64) { writer in
            writer.member("challenge_token", challenge)
        }
        return CanopyRequest(
            .post, base, "/mfa/challenge/email-otp/send", body: body, secrets: [challenge])
    }

    /// Ends the session of the access token; `naming` its refresh token, or with an empty object.
    package static func signOut(
        _ accessToken: Secret, naming refreshToken: Secret?, at base: BaseURL,
        memory: SecretMemory
    ) -> CanopyRequest {
        let body = object(in: memory, capacity: (refreshToken?.count ?? 0) + 64) { writer in
            writer.member(refreshTokenField, ifPresent: refreshToken)
        }
        return CanopyRequest(
            .post, base, "/logout", body: body, accessToken: accessToken,
            secrets: [accessToken] + (refreshToken.map { [$0] } ?? []))
    }

    package static func identity(_ accessToken: Secret, at base: BaseURL) -> CanopyRequest {
        CanopyRequest(
            .get, base, "/me", accessToken: accessToken, secrets: [accessToken])
    }

    /// Asks who nobody is: Canopy answers 401 in its envelope, and anything else is not Canopy.
    package static func examination(at base: BaseURL) -> CanopyRequest {
        CanopyRequest(.get, base, "/me", secrets: [])
    }

    package static func sessions(_ accessToken: Secret, at base: BaseURL) -> CanopyRequest {
        CanopyRequest(
            .get, base, "/sessions", accessToken: accessToken, secrets: [accessToken])
    }

    /// `id` as the server gave it; percent-encoded here.
    package static func revokeSession(
        _ id: String, _ accessToken: Secret, at base: BaseURL
    ) -> CanopyRequest {
        CanopyRequest(
            .delete, base, "/sessions/" + encoded(id), accessToken: accessToken,
            secrets: [accessToken])
    }

    private static func object(
        in memory: SecretMemory, capacity: Int,
        _ fill: (inout JSONWriter<SecretBuffer>) -> Void
    ) -> Secret {
        var writer = JSONWriter(into: SecretBuffer(capacity: capacity, in: memory))
        writer.beginObject()
        fill(&writer)
        writer.endObject()
        return writer.finish().secret()
    }

    private static func encoded(_ text: String) -> String {
        let hexadecimal = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default:
                // A dot too: "." and ".." are path segments with a meaning of their own.
                bytes += [
                    UInt8(ascii: "%"), hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 15)],
                ]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
