internal import AgentCore
internal import LinuxSystem

/// A token object of canopyd's: the token itself in locked memory, and what is said of it.
struct GrantedToken {
    let value: Secret
    let generation: Int64
    let expiresAt: WallTime
    let refreshAt: WallTime

    init(_ response: borrowing Response) throws(Complaint) {
        self = try response.json { value throws(Complaint) in
            guard let token = value["access_token"]?.secret(in: .locked),
                // Anything else in it would be a second line, or a second header.
                token.withBytes({ $0.allSatisfy { (0x21...0x7E).contains($0) } }), token.count > 0,
                let generation = value["generation"]?.int,
                let expiresAt = Self.time(value["expires_at"]),
                let refreshAt = Self.time(value["refresh_at"])
            else { throw .incomprehensible("it is no token object") }
            return GrantedToken(
                value: token, generation: generation, expiresAt: expiresAt, refreshAt: refreshAt)
        }
    }

    private init(value: Secret, generation: Int64, expiresAt: WallTime, refreshAt: WallTime) {
        self.value = value
        self.generation = generation
        self.expiresAt = expiresAt
        self.refreshAt = refreshAt
    }

    /// Asks canopyd for the profile's token, with its own patience.
    static func of(_ profile: ProfileName) throws(Complaint) -> GrantedToken {
        try GrantedToken(
            try Client().send(
                .get, Target.token(profile, minimumValidity: nil, timeout: nil),
                seconds: Limits.requestTimeoutSeconds + Limits.clientGraceSeconds
            ).expecting(200))
    }

    private static func time(_ value: JSONValue?) -> WallTime? {
        value?.string.flatMap(Timestamp.wallTime(rfc3339:))
    }
}
