/// A sign-in that has passed the password and waits for a second factor, as canopyd keeps it.
///
/// What goes on with it is opaque to canopyd, which hands it to the exchange that answers.
package struct SignInChallenge: Sendable, Equatable {
    package let id: SignInID

    /// What the server takes, in its words, unknown ones too.
    package let factors: [String]
    package let expiresAt: WallTime

    /// A ``SignInContinuation``, encoded.
    package let continuation: Secret

    package init(id: SignInID, factors: [String], expiresAt: WallTime, continuation: Secret) {
        self.id = id
        self.factors = factors
        self.expiresAt = expiresAt
        self.continuation = continuation
    }
}

/// What an exchange needs in order to go on with a sign-in that another one began.
package struct SignInContinuation: Sendable, Equatable {
    package let id: SignInID
    package let baseURL: String
    package let publishableKey: String

    /// The server's name for the challenge: whoever has it needs the code alone.
    package let token: Secret
    package let factors: [String]
    package let expiresAt: WallTime

    package init(
        id: SignInID, baseURL: String, publishableKey: String, token: Secret, factors: [String],
        expiresAt: WallTime
    ) {
        self.id = id
        self.baseURL = baseURL
        self.publishableKey = publishableKey
        self.token = token
        self.factors = factors
        self.expiresAt = expiresAt
    }

    private static let kind: UInt8 = 1

    private enum Tag {
        static let id: UInt8 = 1
        static let baseURL: UInt8 = 2
        static let publishableKey: UInt8 = 3
        static let token: UInt8 = 4
        static let factor: UInt8 = 5
        static let expiresAt: UInt8 = 6
    }

    package func challenge(in memory: SecretMemory) -> SignInChallenge {
        var writer = FieldWriter(kind: Self.kind, in: memory)
        writer.field(Tag.id, id.text)
        writer.field(Tag.baseURL, baseURL)
        writer.field(Tag.publishableKey, publishableKey)
        writer.field(Tag.token, token)
        for factor in factors { writer.field(Tag.factor, factor) }
        writer.field(Tag.expiresAt, expiresAt.milliseconds)
        return SignInChallenge(
            id: id, factors: factors, expiresAt: expiresAt,
            continuation: writer.finish(in: memory))
    }

    /// Returns nil if the secret is not what ``challenge(in:)`` makes.
    package init?(_ continuation: Secret, in memory: SecretMemory) {
        let decoded = continuation.withBytes { bytes -> SignInContinuation? in
            guard case .length(bytes.count) = FieldReader.length(bytes) else { return nil }
            return SignInContinuation(
                decoding: UnsafeRawBufferPointer(rebasing: bytes[4...]), in: memory)
        }
        guard let decoded else { return nil }
        self = decoded
    }

    private init?(decoding bytes: UnsafeRawBufferPointer, in memory: SecretMemory) {
        guard let fields = FieldReader(bytes), fields.kind == Self.kind,
            let id = fields.text(Tag.id).flatMap(SignInID.init),
            let baseURL = fields.text(Tag.baseURL),
            let publishableKey = fields.text(Tag.publishableKey),
            let token = fields.secret(Tag.token, in: memory),
            let expiresAt = fields.number(Tag.expiresAt)
        else { return nil }
        self.init(
            id: id, baseURL: baseURL, publishableKey: publishableKey, token: token,
            factors: fields.all(Tag.factor).map { String(decoding: $0, as: UTF8.self) },
            expiresAt: WallTime(milliseconds: expiresAt))
    }
}
