/// What the Secret Service keeps of one profile: the refresh token, all that judges it, and the
/// present access token, so that a restart serves at once and rotates nothing.
///
/// The same bytes stand in the successor slot until the keyring has them.
package struct StoredSession: Equatable, Sendable {
    package var header: SessionHeader
    package let refreshToken: Secret

    /// nil if the server sent none; its life is in ``SessionHeader/access``.
    package let accessToken: AccessToken?

    package init(header: SessionHeader, refreshToken: Secret, accessToken: AccessToken?) {
        self.header = header
        self.header.access = accessToken?.life
        self.refreshToken = refreshToken
        self.accessToken = accessToken
    }

    /// The format that this program writes.
    ///
    /// A newer one is refused and never overwritten.
    package static let formatVersion: Int64 = 1

    /// The secret of the item: a JSON object with a format version.
    package func encoded(in memory: SecretMemory) -> Secret {
        let size = refreshToken.count + (accessToken?.value.count ?? 0) + 1024
        var writer = JSONWriter(into: SecretBuffer(capacity: size, in: memory))
        writer.beginObject()
        writer.member("version", StoredSession.formatVersion)
        writer.member("sign_in", header.signIn.text)
        writer.member("generation", header.generation)
        writer.member("refresh_token", refreshToken)
        writer.member("url", header.baseURL)
        writer.member("publishable_key", header.publishableKey)
        writer.member("identity_id", header.identity.id)
        writer.member("identity_email", header.identity.email)
        writer.member("signed_in_ms", header.signedInAt.milliseconds)
        writer.member("anchor_inode", Int64(bitPattern: header.anchor.inode))
        writer.member("anchor_birth_ns", header.anchor.birth)
        writer.member("attempted_ms", ifPresent: header.attemptedAt?.milliseconds)
        if let last = header.lastRotation {
            writer.key("last_rotation")
            StoredSession.write(last, to: &writer)
        }
        if let notBefore = header.notBefore {
            writer.key("not_before")
            StoredSession.write(notBefore.since, span: notBefore.span, to: &writer)
        }
        if let access = accessToken {
            writer.member("access_token", access.value)
            writer.member("access_type", access.type)
            writer.member("access_lifetime_ns", access.life.lifetime.nanoseconds)
            writer.member("access_expiry_ms", ifPresent: access.life.expiry?.milliseconds)
            writer.member(
                "access_clock_offset_ns", ifPresent: access.life.serverClockOffset?.nanoseconds)
            writer.key("access_sent")
            StoredSession.write(access.life.sent, to: &writer)
        }
        writer.endObject()
        return writer.finish().secret()
    }

    private static func write<Sink: ByteSink & ~Copyable>(
        _ stamp: Stamp, span: TimeSpan? = nil, to writer: inout JSONWriter<Sink>
    ) {
        writer.beginObject()
        writer.member("boot_id", stamp.boot.text)
        writer.member("boot_ns", stamp.moment.boot.nanoseconds)
        writer.member("wall_ms", stamp.moment.wall.milliseconds)
        writer.member("span_ns", ifPresent: span?.nanoseconds)
        writer.endObject()
    }

    /// Why stored bytes are no session.
    package enum Unreadable: Error, Equatable, Sendable {
        /// Written by a later version of this program, which is the one to read it.
        case newerFormat(Int64)
        /// Not what this program writes: the member that is missing or wrong.
        case malformed(String)
    }

    package init(decoding bytes: UnsafeRawBufferPointer, in memory: SecretMemory)
        throws(Unreadable)
    {
        let root: JSONValue
        do throws(JSONFault) {
            root = try JSONReader.parse(bytes)
        } catch {
            throw .malformed("JSON, \(error)")
        }
        let version = try StoredSession.integer(root, "version")
        guard version <= StoredSession.formatVersion else { throw .newerFormat(version) }
        guard version == StoredSession.formatVersion else { throw .malformed("version") }
        guard let signIn = SignInID(try StoredSession.text(root, "sign_in")) else {
            throw .malformed("sign_in")
        }
        let generation = try StoredSession.integer(root, "generation")
        guard generation >= 0 else { throw .malformed("generation") }
        guard let token = root["refresh_token"]?.secret(in: memory), token.count > 0 else {
            throw .malformed("refresh_token")
        }
        refreshToken = token
        accessToken = try StoredSession.accessToken(root, memory)
        header = SessionHeader(
            signIn: signIn, generation: generation,
            baseURL: try StoredSession.text(root, "url"),
            publishableKey: try StoredSession.text(root, "publishable_key"),
            identity: Identity(
                id: try StoredSession.text(root, "identity_id"),
                email: try StoredSession.text(root, "identity_email")),
            signedInAt: WallTime(
                milliseconds: try StoredSession.integer(root, "signed_in_ms")),
            anchor: Anchor(
                inode: UInt64(bitPattern: try StoredSession.integer(root, "anchor_inode")),
                birth: try StoredSession.integer(root, "anchor_birth_ns")),
            lastRotation: try root["last_rotation"].map(StoredSession.stamp),
            attemptedAt: root["attempted_ms"]?.int.map(WallTime.init(milliseconds:)),
            notBefore: try root["not_before"].map(StoredSession.notBefore),
            access: accessToken?.life)
    }

    private static func accessToken(
        _ root: JSONValue, _ memory: SecretMemory
    ) throws(Unreadable) -> AccessToken? {
        guard let value = root["access_token"]?.secret(in: memory) else { return nil }
        guard let sent = root["access_sent"] else { throw .malformed("access_sent") }
        return AccessToken(
            value: value, type: try text(root, "access_type"),
            life: AccessTokenLife(
                lifetime: TimeSpan(nanoseconds: try integer(root, "access_lifetime_ns")),
                sent: try stamp(sent),
                expiry: root["access_expiry_ms"]?.int.map(WallTime.init(milliseconds:)),
                serverClockOffset: root["access_clock_offset_ns"]?.int.map(
                    TimeSpan.init(nanoseconds:))))
    }

    private static func notBefore(_ value: JSONValue) throws(Unreadable) -> NotBefore {
        NotBefore(
            since: try stamp(value),
            span: TimeSpan(nanoseconds: try integer(value, "span_ns")))
    }

    private static func stamp(_ value: JSONValue) throws(Unreadable) -> Stamp {
        Stamp(
            Moment(
                boot: BootTime(nanoseconds: try integer(value, "boot_ns")),
                wall: WallTime(milliseconds: try integer(value, "wall_ms"))),
            boot: BootID(try text(value, "boot_id")))
    }

    private static func text(_ value: JSONValue, _ key: StaticString) throws(Unreadable) -> String {
        guard let text = value[key]?.string else { throw .malformed("\(key)") }
        return text
    }

    private static func integer(
        _ value: JSONValue, _ key: StaticString
    ) throws(Unreadable) -> Int64 {
        guard let number = value[key]?.int else { throw .malformed("\(key)") }
        return number
    }
}
