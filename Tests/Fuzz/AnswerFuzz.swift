/// An answer of the server: the first byte is for its status, the first line is its `Retry-After`, the
/// second its `Date`, the rest its body.
enum AnswerFuzz {
    private static let statuses = [
        200, 201, 204, 206, 301, 302, 304, 400, 401, 403, 404, 408, 409, 422, 429, 451, 500, 502,
        503, 504, 511, 599,
    ]
    private static let now = Moment(
        boot: BootTime(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_776_675_600_000))
    private static let sent = Stamp(now, boot: BootID("11111111-2222-3333-4444-555555555555"))

    static func check(_ bytes: UnsafeRawBufferPointer) {
        guard let first = bytes.first else { return }
        let status = statuses[Int(first) % statuses.count]
        var lines: [String] = []
        var start = 1
        while lines.count < 2, let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(UnsafeRawBufferPointer(rebasing: bytes[start..<end]).text)
            start = end + 1
        }
        let body = UnsafeRawBufferPointer(rebasing: bytes[start...])
        let answer = { (body: UnsafeRawBufferPointer) in
            CanopyAnswer(
                status: status, retryAfter: lines.first.flatMap { $0.isEmpty ? nil : $0 },
                date: lines.dropFirst().first, body: Secret(copying: body, in: .ordinary))
        }
        let whole = answer(body)
        let isEnvelope = CanopyBody(body, of: whole).isEnvelope
        check(meaning(whole), whole, isEnvelope: isEnvelope)
        check(signIn: whole)
        // An answer that ends early is never a verdict, and never a rotation.
        guard let root = try? JSONReader.parse(body), root.kind == .object else { return }
        var end = body.count
        while body[end - 1] != UInt8(ascii: "}") { end -= 1 }
        for length in stride(from: 0, to: end, by: max(1, end / 16)) {
            switch meaning(answer(body.first(length))) {
            case .rotated, .notNative, .verdict, .refused:
                law(false, "half an answer decides nothing")
            case .notPresented, .toldToWait, .unavailable, .ambiguous: break
            }
        }
    }

    private static func meaning(_ answer: CanopyAnswer) -> RefreshMeaning {
        RefreshMeaning(.answered(answer), sent: sent, now: now, memory: .ordinary)
    }

    private static func check(
        _ meaning: RefreshMeaning, _ answer: CanopyAnswer, isEnvelope: Bool
    ) {
        switch meaning {
        case .notPresented:
            law(false, "what was answered was sent")
        case .rotated(let grant):
            law((200..<300).contains(answer.status), "only a 2xx rotates")
            check(grant)
        case .notNative:
            law((200..<300).contains(answer.status), "only a 2xx can lack a refresh token")
        case .verdict(let words):
            law(answer.status == 401 && isEnvelope, "only Canopy's own 401 is a verdict")
            check(words)
        case .toldToWait(let wait, let words):
            law(answer.status == 429 && (wait ?? .zero) >= .zero, "429 is a wait")
            check(words)
        case .unavailable(let wait, let words):
            law(answer.status == 503, "503 is unavailable")
            law(wait != nil || isEnvelope, "a proxy's 503 may hide a rotation")
            law((wait ?? .zero) >= .zero, "nobody is asked to wait for the past")
            check(words)
        case .ambiguous(let failure):
            law(answer.status != 429, "429 is not ambiguous")
            check(failure.detail)
        case .refused(let words):
            law((400..<500).contains(answer.status) && isEnvelope, "a refusal is Canopy's own")
            check(words)
        }
    }

    private static func check(_ grant: Grant) {
        check(grant.refreshToken)
        guard let access = grant.accessToken else { return }
        check(access.value)
        law(access.life.lifetime > .zero, "a token's life is not over when it comes")
        // Whatever the server says, nobody is given a token for longer than its lifetime.
        law(
            access.life.remaining(at: now, boot: sent.boot) <= access.life.lifetime,
            "a token is not good for longer than it lives")
        let point = RotationTiming.rotationPoint(lifetime: access.life.lifetime, draw: 0.999)
        law(point > .zero && point < access.life.lifetime, "a token is rotated within its life")
    }

    private static func check(_ token: Secret) {
        token.withBytes {
            law((1...Limits.tokenBytes).contains($0.count), "a token has its limit")
            law($0.allSatisfy { (0x21...0x7E).contains($0) }, "a token cannot end a header line")
        }
    }

    private static func check(signIn answer: CanopyAnswer) {
        switch SignInMeaning(.answered(answer), sent: sent, now: now, memory: .ordinary) {
        case .granted(let grant, _): check(grant)
        case .notNative(let token): if let token { check(token) }
        case .challenged(let token, _, let expiry):
            check(token)
            let latest = now.wall + .seconds(Int64(Limits.challengeSeconds))
            law(expiry > now.wall && expiry <= latest, "a challenge ends, and not at once")
        case .rejected(let words): check(words)
        case .failed(let failure): check(failure.detail)
        }
    }

    /// A server's words go to terminals and logs.
    private static func check(_ words: String) {
        law(words.utf8.count <= 4 * 300 + 200, "words are not endless")
        for scalar in words.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            law(!isControl, "no control character reaches a terminal")
        }
    }
}
