/// What a token reply says, at the moment that it is asked.
package struct TokenView: Sendable {
    package let profile: ProfileName
    package let token: AccessToken

    /// How long the token is still good; said in whole seconds, rounded down.
    package let remaining: TimeSpan

    /// When the daemon means to rotate.
    package let refreshAt: WallTime
    package let generation: Int64
    package let identity: Identity

    package init(
        profile: ProfileName, token: AccessToken, remaining: TimeSpan, refreshAt: WallTime,
        generation: Int64, identity: Identity
    ) {
        self.profile = profile
        self.token = token
        self.remaining = remaining
        self.refreshAt = refreshAt
        self.generation = generation
        self.identity = identity
    }
}

/// What is said of a profile: the profile object of INTERFACE, and the data of a `state` event.
package struct ProfileView: Sendable {
    package let profile: ProfileName
    package let state: ProfileState

    /// Why a new sign-in is needed, while it is.
    package let reason: SignInReason?

    /// The server, the identity, the generation and the time of the sign-in; nil where the state
    /// directory cannot be read, or another machine's session is all that there is.
    package let url: String?
    package let identity: Identity?
    package let generation: Int64?
    package let expiresAt: WallTime?
    package let refreshAt: WallTime?
    package let lastRotationAt: WallTime?

    /// The last failure that no success has followed.
    package let lastError: (code: Problem.Code, detail: String, at: WallTime)?
    package let signedInAt: WallTime?

    package init(
        profile: ProfileName, state: ProfileState, reason: SignInReason?, url: String?,
        identity: Identity?, generation: Int64?, expiresAt: WallTime?, refreshAt: WallTime?,
        lastRotationAt: WallTime?, lastError: (code: Problem.Code, detail: String, at: WallTime)?,
        signedInAt: WallTime?
    ) {
        self.profile = profile
        self.state = state
        self.reason = reason
        self.url = url
        self.identity = identity
        self.generation = generation
        self.expiresAt = expiresAt
        self.refreshAt = refreshAt
        self.lastRotationAt = lastRotationAt
        self.lastError = lastError
        self.signedInAt = signedInAt
    }
}

/// What is said of the daemon as a whole.
package struct StatusView: Sendable {
    package let version: String
    package let startedAt: WallTime

    /// `owner` is the program behind the Secret Service, where it is known.
    package let keyring: (state: KeyringState, owner: String?)

    /// Open connections, the asking one included.
    package let connections: Int
    package let profiles: [ProfileView]

    package init(
        version: String, startedAt: WallTime, keyring: (state: KeyringState, owner: String?),
        connections: Int, profiles: [ProfileView]
    ) {
        self.version = version
        self.startedAt = startedAt
        self.keyring = keyring
        self.connections = connections
        self.profiles = profiles
    }
}

// MARK: - As JSON

extension JSONWriter where Sink: ~Copyable {
    mutating func write(_ identity: Identity) {
        beginObject()
        member("id", identity.id)
        member("email", identity.email)
        endObject()
    }

    mutating func member(_ key: StaticString, at time: WallTime?) {
        guard let time else { return }
        member(key, Timestamp.rfc3339(time))
    }

    mutating func write(_ view: ProfileView) {
        beginObject()
        member("profile", view.profile.text)
        member("state", view.state.rawValue)
        member("reason", ifPresent: view.reason?.rawValue)
        member("url", ifPresent: view.url)
        if let identity = view.identity {
            key("identity")
            write(identity)
        }
        member("generation", ifPresent: view.generation)
        member("expires_at", at: view.expiresAt)
        member("refresh_at", at: view.refreshAt)
        member("last_rotation_at", at: view.lastRotationAt)
        if let error = view.lastError {
            key("last_error")
            beginObject()
            member("code", error.code.rawValue)
            member("detail", error.detail)
            member("at", at: error.at)
            endObject()
        }
        member("signed_in_at", at: view.signedInAt)
        endObject()
    }

    mutating func write(_ view: TokenView) {
        beginObject()
        member("profile", view.profile.text)
        member("access_token", view.token.value)
        member("token_type", view.token.type)
        member("expires_at", at: view.token.life.expiresAt)
        member("expires_in", max(0, view.remaining.wholeSeconds))
        member("refresh_at", at: view.refreshAt)
        member("generation", view.generation)
        key("identity")
        write(view.identity)
        endObject()
    }

    mutating func write(_ profiles: [ProfileView]) {
        beginArray()
        for profile in profiles { write(profile) }
        endArray()
    }

    mutating func write(_ view: StatusView) {
        beginObject()
        member("version", view.version)
        member("started_at", at: view.startedAt)
        key("keyring")
        beginObject()
        member("state", view.keyring.state.rawValue)
        member("owner", ifPresent: view.keyring.owner)
        member("limit", ifPresent: view.keyring.owner.flatMap { KeyringOwner(process: $0).limit })
        endObject()
        member("connections", Int64(view.connections))
        key("profiles")
        write(view.profiles)
        endObject()
    }

    mutating func write(_ problem: Problem) {
        beginObject()
        member("type", "urn:canopyd:problem:" + problem.code.rawValue)
        key("title")
        string(problem.code.title)
        member("status", Int64(problem.code.status))
        member("detail", problem.detail)
        member("code", problem.code.rawValue)
        member("reason", ifPresent: problem.reason?.rawValue)
        member("profile", ifPresent: problem.profile?.text)
        member("retry_after", ifPresent: problem.retryAfter)
        member("fix", ifPresent: problem.fix)
        endObject()
    }
}
