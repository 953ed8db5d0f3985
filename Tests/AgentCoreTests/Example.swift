import AgentCore

/// Values that most tests need, each with what a test wants different.
enum Example {
    static let boot = BootID("11111111-2222-3333-4444-555555555555")
    static let otherBoot = BootID("99999999-2222-3333-4444-555555555555")
    static let anchor = Anchor(inode: 42, birth: 1_700_000_000_000_000_000)
    static let signIn = SignInID(high: 0xA, low: 0xA)
    static let otherSignIn = SignInID(high: 0xB, low: 0xB)
    static let identity = Identity(id: "id_1", email: "ada@example.org")
    static let url = "https://auth.example.org"

    static func profile(_ name: String) -> ProfileName {
        do {
            return try ProfileName(name)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// 2026-04-20T09:00:00Z, 1000 s after boot, and so many seconds later.
    static func moment(_ seconds: Double = 0, wallStep: Double = 0) -> Moment {
        Moment(
            boot: BootTime(nanoseconds: Int64((1000 + seconds) * 1e9)),
            wall: WallTime(
                milliseconds: 1_776_675_600_000 + Int64((seconds + wallStep) * 1000)))
    }

    static func stamp(_ seconds: Double = 0, boot: BootID = Example.boot) -> Stamp {
        Stamp(moment(seconds), boot: boot)
    }

    static func secret(_ text: String) -> Secret {
        var text = text
        return text.withUTF8 { Secret(copying: UnsafeRawBufferPointer($0), in: .ordinary) }
    }

    static func life(
        _ lifetime: Double = 900, sent: Double = 0, boot: BootID = Example.boot,
        expiry: Double? = nil, offset: Double? = nil
    ) -> AccessTokenLife {
        AccessTokenLife(
            lifetime: span(lifetime), sent: stamp(sent, boot: boot),
            expiry: expiry.map { moment($0).wall },
            serverClockOffset: offset.map(span))
    }

    static func span(_ seconds: Double) -> TimeSpan {
        TimeSpan(nanoseconds: Int64(seconds * 1e9))
    }

    static func token(_ text: String = "access", _ life: AccessTokenLife = life()) -> AccessToken {
        AccessToken(value: secret(text), type: "Bearer", life: life)
    }

    static func header(
        _ generation: Int64 = 0, of signIn: SignInID = signIn, anchor: Anchor = anchor,
        lastRotation: Stamp? = nil, notBefore: NotBefore? = nil, access: AccessTokenLife? = life()
    ) -> SessionHeader {
        SessionHeader(
            signIn: signIn, generation: generation, baseURL: url, publishableKey: "pk_example",
            identity: identity, signedInAt: moment(-3600).wall, anchor: anchor,
            lastRotation: lastRotation, notBefore: notBefore, access: access)
    }

    /// `access` nil for a session without an access token.
    static func session(
        _ generation: Int64 = 0, of signIn: SignInID = signIn,
        lastRotation: Stamp? = nil, notBefore: NotBefore? = nil, access: AccessTokenLife? = life()
    ) -> StoredSession {
        StoredSession(
            header: header(
                generation, of: signIn, lastRotation: lastRotation, notBefore: notBefore),
            refreshToken: secret(refreshToken(generation, of: signIn)),
            accessToken: access.map { token("access-\(generation)", $0) })
    }

    /// What the scripted server calls the refresh token of a generation: `a-3`.
    static func refreshToken(_ generation: Int64, of signIn: SignInID) -> String {
        "\(signIn.text.suffix(1))-\(generation)"
    }

    static func report(
        _ generation: Int64 = 0, lastRotation: Stamp? = nil, notBefore: NotBefore? = nil,
        access: AccessTokenLife? = life(), isAmbiguous: Bool = false, storeFailure: Failure? = nil,
        slotKeptFor: TimeSpan? = nil, isSlotRewritten: Bool = false
    ) -> SessionReport {
        SessionReport(
            session(generation, lastRotation: lastRotation, notBefore: notBefore, access: access),
            isAmbiguous: isAmbiguous, storeFailure: storeFailure, slotKeptFor: slotKeptFor,
            isSlotRewritten: isSlotRewritten)
    }

    static func answer(
        _ status: Int, _ body: String, retryAfter: String? = nil, date: String? = nil
    ) -> Transmission {
        .answered(
            CanopyAnswer(status: status, retryAfter: retryAfter, date: date, body: secret(body)))
    }

    static func envelope(_ status: Int, _ message: String = "no") -> Transmission {
        answer(status, #"{"error":{"statusCode":\#(status),"message":"\#(message)"}}"#)
    }
}

/// The bytes of a secret that a test made up itself.
func text(_ secret: Secret?) -> String? {
    secret?.withBytes { String(decoding: $0, as: UTF8.self) }
}
