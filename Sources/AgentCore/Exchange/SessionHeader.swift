/// All of a stored session but its secrets: what decisions are made from.
package struct SessionHeader: Equatable, Sendable {
    package let signIn: SignInID

    /// How many times the refresh token has rotated since sign-in.
    package let generation: Int64

    /// Where the token is presented, and nowhere else.
    package let baseURL: String

    package let publishableKey: String
    package let identity: Identity
    package let signedInAt: WallTime

    /// The state directory that the session belongs to.
    package let anchor: Anchor

    /// When this generation came; nil for the generation of the sign-in itself.
    package var lastRotation: Stamp?

    /// When the token was last about to be presented.
    package var attemptedAt: WallTime?

    /// Before this, the token is not presented.
    package var notBefore: NotBefore?

    /// The life of the access token that is stored beside; nil if none is.
    package var access: AccessTokenLife?

    package init(
        signIn: SignInID, generation: Int64, baseURL: String, publishableKey: String,
        identity: Identity, signedInAt: WallTime, anchor: Anchor, lastRotation: Stamp? = nil,
        attemptedAt: WallTime? = nil, notBefore: NotBefore? = nil, access: AccessTokenLife? = nil
    ) {
        self.signIn = signIn
        self.generation = generation
        self.baseURL = baseURL
        self.publishableKey = publishableKey
        self.identity = identity
        self.signedInAt = signedInAt
        self.anchor = anchor
        self.lastRotation = lastRotation
        self.attemptedAt = attemptedAt
        self.notBefore = notBefore
        self.access = access
    }

    package var position: Generation { Generation(signIn: signIn, number: generation) }

    /// What a status shows of the session while the keyring is locked.
    package var account: KnownSignIns.Account {
        KnownSignIns.Account(baseURL: baseURL, identity: identity, signedInAt: signedInAt)
    }
}
