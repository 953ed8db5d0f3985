import AgentCore
import Testing

@Suite("What an answer to a refresh means")
struct RefreshMeaningTests {
    /// A meaning without its tokens and words.
    enum Class: Equatable {
        case notPresented
        case rotated(String?, access: String?)
        case notNative
        case verdict
        case toldToWait(TimeSpan?)
        case unavailable(TimeSpan?)
        case ambiguous(Failure.Kind)
        case refused
    }

    private func meaning(_ transmission: Transmission) -> RefreshMeaning {
        RefreshMeaning(
            transmission, sent: Example.stamp(), now: Example.moment(1), memory: .ordinary)
    }

    private func classed(_ transmission: Transmission) -> Class {
        switch meaning(transmission) {
        case .notPresented: .notPresented
        case .rotated(let grant):
            .rotated(text(grant.refreshToken), access: text(grant.accessToken?.value))
        case .notNative: .notNative
        case .verdict: .verdict
        case .toldToWait(let wait, _): .toldToWait(wait)
        case .unavailable(let wait, _): .unavailable(wait)
        case .ambiguous(let failure): .ambiguous(failure.kind)
        case .refused: .refused
        }
    }

    private static let html = "<html><body>Please sign in to the network</body></html>"

    private static func envelope(_ status: Int, code: Int? = nil) -> String {
        #"{"error":{"statusCode":\#(code ?? status),"code":null,"message":"No","details":["a","b"]}}"#
    }

    @Test("What never left was not presented; what got no answer may have been")
    func transmission() {
        #expect(classed(.notSent("no route")) == .notPresented)
        #expect(classed(.lost("reset")) == .ambiguous(.noAnswer))
    }

    @Test("Every status with Canopy's envelope", arguments: 200..<600)
    func envelope(_ status: Int) {
        let expected: Class =
            switch status {
            case 401: .verdict
            case 429: .toldToWait(nil)
            // Canopy itself says so; a proxy's page may hide a rotation.
            case 503: .unavailable(nil)
            case 408: .ambiguous(.serverError)
            case 200..<300, 500..<600: .ambiguous(.serverError)
            case 300..<400: .ambiguous(.somebodyInBetween)
            default: .refused
            }
        #expect(classed(Example.answer(status, Self.envelope(status))) == expected)
    }

    @Test(
        "Every status with a page, a cut body, nothing, or another's envelope", arguments: 200..<600
    )
    func notCanopy(_ status: Int) {
        let expected: Class =
            switch status {
            case 429: .toldToWait(nil)
            case 408, 200..<300, 500..<600: .ambiguous(.serverError)
            default: .ambiguous(.somebodyInBetween)
            }
        let whole = Self.envelope(status)
        for body in [
            Self.html, "", "null", "[]", "{}", #""error""#, String(whole.dropLast()),
            Self.envelope(status, code: status + 1), #"{"error":"invalid_token"}"#,
            #"{"error":{"message":"No"}}"#, #"{"error":{"statusCode":"\#(status)"}}"#,
            #"{"error":{"statusCode":\#(status).0}}"#, #"[{"error":{"statusCode":\#(status)}}]"#,
            #"{"data":{"error":{"statusCode":\#(status)}}}"#,
        ] {
            #expect(classed(Example.answer(status, body)) == expected)
        }
    }

    @Test(
        "Every 2xx with a refresh token is a rotation, whatever else is wrong", arguments: 200..<300
    )
    func rotated(_ status: Int) {
        for (body, access) in [
            (#"{"refresh_token":"r","access_token":"a","expires_in":900}"#, "a" as String?),
            (#"{"data":{"refresh_token":"r","access_token":"a","expires_in":900}}"#, "a"),
            (#"{"data":{"access_token":"a","expires_in":900},"refresh_token":"r"}"#, "a"),
            (
                #"{"data":{"access_token":"a","expires_in":900,"refresh_token":null},"refresh_token":"r"}"#,
                "a"
            ),
            (#"{"data":null,"refresh_token":"r"}"#, nil),
            (#"{"data":[],"refresh_token":"r"}"#, nil),
            (#"{"refresh_token":"r"}"#, nil),
            (#"{"refresh_token":"r","access_token":"a"}"#, nil),
            (#"{"refresh_token":"r","access_token":"a","expires_in":0}"#, nil),
            (#"{"refresh_token":"r","access_token":"a","expires_in":-900}"#, nil),
            (#"{"refresh_token":"r","access_token":"a","expires_in":"900"}"#, nil),
            (#"{"refresh_token":"r","access_token":"a","expires_in":1e99}"#, nil),
            (#"{"refresh_token":"r","access_token":"a\nb","expires_in":900}"#, nil),
            (#"{"refresh_token":"r","access_token":7,"expires_in":900}"#, nil),
            (#"{"refresh_token":"r","error":{"statusCode":\#(status),"message":"odd"}}"#, nil),
            (#"{"refresh_token":"\u0072","token_type":5}"#, nil),
        ] {
            #expect(
                classed(Example.answer(status, body, retryAfter: "9"))
                    == .rotated("r", access: access))
        }
    }

    @Test("A Canopy body without a refresh token is no native session")
    func notNative() {
        for body in [
            #"{"access_token":"a","expires_in":900}"#,
            #"{"data":{"access_token":"a","expires_in":900}}"#,
            #"{"access_token":"a","refresh_token":null}"#,
            #"{"access_token":"a","refresh_token":""}"#,
        ] {
            #expect(classed(Example.answer(200, body)) == .notNative)
        }
    }

    @Test("A refresh token that cannot be read is none of Canopy's answers")
    func unreadableToken() {
        let long = String(repeating: "r", count: Limits.tokenBytes + 1)
        for token in [
            #""r\n""#, #""r r""#, #""\u0000""#, #""\u00e9""#, #""\u007f""#, "7", "true", "{}",
            "[\"r\"]", "\"\(long)\"",
        ] {
            #expect(
                classed(Example.answer(200, #"{"access_token":"a","refresh_token":\#(token)}"#))
                    == .ambiguous(.serverError))
        }
        let longest = String(repeating: "r", count: Limits.tokenBytes)
        #expect(
            classed(Example.answer(200, #"{"refresh_token":"\#(longest)"}"#))
                == .rotated(longest, access: nil))
    }

    @Test("A 2xx that was cut anywhere is ambiguous, never a verdict")
    func truncated() {
        let whole = #"{"data":{"access_token":"a","expires_in":900,"refresh_token":"r"}}"#
        for count in 0..<whole.utf8.count {
            #expect(
                classed(Example.answer(200, String(whole.prefix(count))))
                    == .ambiguous(.serverError))
        }
    }

    @Test("A successor is read whatever the text beside it is")
    func brokenText() {
        for text in [#"\ud83d"#, #"\ude00\ud83d"#, "\u{FEFF}"] {
            let body =
                #"{"data":{"name":"\#(text)","access_token":"a","expires_in":9,"refresh_token":"r"}}"#
            #expect(classed(Example.answer(200, body)) == .rotated("r", access: "a"))
            #expect(classed(Example.answer(200, "\u{FEFF}" + body)) == .rotated("r", access: "a"))
        }
        // Nor is a verdict less of one for what its words are.
        #expect(
            classed(Example.answer(401, #"{"error":{"statusCode":401,"message":"\ud83d"}}"#))
                == .verdict)
        // A token that is no token is none.
        #expect(
            classed(Example.answer(200, #"{"access_token":"a","refresh_token":"\ud83d"}"#))
                == .ambiguous(.serverError))
    }

    @Test("A successor is read however deep what stands beside it is")
    func deep() {
        let pit = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(
            classed(Example.answer(200, #"{"x":\#(pit),"refresh_token":"r"}"#))
                == .rotated("r", access: nil))
    }

    @Test("Of an answer that is longer than is read, what came whole counts, and nothing else")
    func cutOff() {
        let whole = #"{"data":{"expires_in":900,"access_token":"a","refresh_token":"r","n":1234}}"#
        func answer(_ status: Int, _ body: String) -> CanopyAnswer {
            CanopyAnswer(
                status: status, retryAfter: nil, date: nil, body: Example.secret(body),
                isCutOff: true)
        }
        let end = whole.utf8.count - #","n":1234}}"#.utf8.count
        for count in 0..<whole.utf8.count {
            let cut = answer(200, String(whole.prefix(count)))
            #expect(cut.isWholeSuccess == (count >= end), "\(count)")
            guard count >= end else { continue }
            #expect(classed(.answered(cut)) == .rotated("r", access: "a"), "\(count)")
        }
        #expect(!answer(401, whole).isWholeSuccess && !answer(200, "{}").isWholeSuccess)
        #expect(!answer(200, #"{"access_token":"a","expires_in":9}"#).isWholeSuccess)
    }

    @Test("A success is whole with its last brace, and not before; nothing else is one")
    func wholeSuccess() {
        let whole = #"{"data":{"access_token":"a","expires_in":900,"refresh_token":"r"}}"#
        func isWhole(_ status: Int, _ body: String) -> Bool {
            switch Example.answer(status, body) {
            case .answered(let answer): answer.isWholeSuccess
            case .lost, .notSent: false
            }
        }
        #expect(isWhole(200, whole) && isWhole(201, whole + " \n"))
        #expect(isWhole(200, #"{"error":null,"data":{"refresh_token":"r"}}"#))
        for count in 0..<whole.utf8.count { #expect(!isWhole(200, String(whole.prefix(count)))) }
        #expect(!isWhole(200, whole + "x") && !isWhole(200, whole + whole))
        #expect(!isWhole(401, Self.envelope(401)) && !isWhole(500, whole) && !isWhole(302, whole))
        #expect(!isWhole(200, Self.html) && !isWhole(200, Self.envelope(200)))
    }

    @Test(
        "A status outside of HTTP's range is ambiguous", arguments: [0, 1, 100, 199, 600, 999, -1])
    func strangeStatus(_ status: Int) {
        #expect(
            classed(Example.answer(status, Self.envelope(status))) == .ambiguous(.serverError))
    }

    @Test("Retry-After is read in seconds or as a date, against the server's own clock")
    func retryAfter() {
        let rows: [(retryAfter: String?, date: String?, wait: TimeSpan?)] = [
            ("120", nil, .seconds(120)), ("0", nil, .zero),
            ("9999999999999", nil, .seconds(1 << 32)),
            ("-1", nil, nil), ("", nil, nil), ("soon", nil, nil), ("1.5", nil, nil),
            ("99999999999999999999", nil, nil), (nil, nil, nil),
            // Our clock says 2026-04-20T09:00:01Z.
            ("Mon, 20 Apr 2026 09:01:01 GMT", nil, .seconds(60)),
            ("Mon, 20 Apr 2026 08:00:00 GMT", nil, .zero),
            // The server's is an hour ahead.
            (
                "Mon, 20 Apr 2026 10:01:01 GMT", "Mon, 20 Apr 2026 10:00:01 GMT",
                .seconds(60)
            ),
            ("Monday, 20-Apr-26 10:01:01 GMT", "Mon Apr 20 10:00:01 2026", .seconds(60)),
            ("Mon, 20 Apr 2026 09:01:01 GMT", "nonsense", .seconds(60)),
            ("120", "Mon, 20 Apr 2026 10:00:01 GMT", .seconds(120)),
        ]
        for row in rows {
            let told = Example.answer(429, "", retryAfter: row.retryAfter, date: row.date)
            #expect(classed(told) == .toldToWait(row.wait), "\(row.retryAfter ?? "none")")
            let unavailable = Example.answer(
                503, Self.html, retryAfter: row.retryAfter, date: row.date)
            #expect(
                classed(unavailable)
                    == row.wait.map(Class.unavailable) ?? .ambiguous(.serverError))
            // Elsewhere it means nothing.
            let failed = Example.answer(502, "", retryAfter: row.retryAfter, date: row.date)
            #expect(classed(failed) == .ambiguous(.serverError))
        }
    }

    @Test("The server's words come along, printable and not endless")
    func words() throws {
        let body =
            #"{"error":{"statusCode":400,"message":"\u001b[31mBad\n","details":["x\u0007","y",5]}}"#
        guard case .refused(let words) = meaning(Example.answer(400, body)) else {
            Issue.record("not refused")
            return
        }
        #expect(words == " [31mBad : x , y (400)")
        let long = String(repeating: "m", count: 5000)
        guard
            case .refused(let cut) = meaning(
                Example.answer(400, #"{"error":{"statusCode":400,"message":"\#(long)"}}"#))
        else {
            Issue.record("not refused")
            return
        }
        #expect(cut.utf8.count < 320)
        guard case .ambiguous(let failure) = meaning(Example.answer(302, Self.html)) else {
            Issue.record("not ambiguous")
            return
        }
        #expect(failure.detail.contains("captive portal or proxy?"))
    }

    @Test("Any bytes at all have a meaning")
    func anyBytes() {
        var generator = SeededGenerator(seed: 7)
        let seeds = [
            #"{"data":{"access_token":"a.b.c","expires_in":900,"refresh_token":"r"}}"#,
            Self.envelope(401),
        ].map { Array($0.utf8) }
        for _ in 0..<4000 {
            let bytes = generator.mutated(seeds.randomElement(using: &generator) ?? [])
            let body = bytes.withUnsafeBytes { Secret(copying: $0, in: .ordinary) }
            let status = Int.random(in: 190...610, using: &generator)
            let answer = CanopyAnswer(status: status, retryAfter: "1", date: "x", body: body)
            if case .verdict = meaning(.answered(answer)) { #expect(status == 401) }
            if case .rotated = meaning(.answered(answer)) { #expect((200..<300).contains(status)) }
        }
    }
}

@Suite("What an answer to a sign-in means")
struct SignInMeaningTests {
    private enum Class: Equatable {
        case granted(String?, Identity)
        case notNative(String?)
        case challenged([String], until: WallTime)
        case rejected(String)
        case failed(Failure.Kind)
    }

    private func classed(_ transmission: Transmission) -> Class {
        switch SignInMeaning(
            transmission, sent: Example.stamp(), now: Example.moment(1), memory: .ordinary)
        {
        case .granted(let grant, let identity): .granted(text(grant.refreshToken), identity)
        case .notNative(let token): .notNative(text(token))
        case .challenged(_, let factors, let expiry): .challenged(factors, until: expiry)
        case .rejected(let words): .rejected(words)
        case .failed(let failure): .failed(failure.kind)
        }
    }

    @Test("A grant, a challenge, a cookie's session, or none of them")
    func successes() {
        let rows: [(String, Class)] = [
            (
                #"{"data":{"access_token":"a","expires_in":9,"refresh_token":"r","identity":{"id":"id_1","email":"ada@example.org"}}}"#,
                .granted("r", Example.identity)
            ),
            (#"{"refresh_token":"r"}"#, .granted("r", Identity(id: "", email: ""))),
            (
                #"{"refresh_token":"r","identity":{"id":"i"}}"#,
                .granted("r", Identity(id: "i", email: ""))
            ),
            (
                #"{"data":{"requires_mfa_challenge":true,"access_token":"p"}}"#,
                .failed(.serverError)
            ),
            (#"{"mfa_challenge":{"id":"c"}}"#, .failed(.serverError)),
            (
                #"{"mfa_challenge":{"challenge_token":"c"}}"#,
                .challenged([], until: Example.moment(301).wall)
            ),
            (
                #"{"mfa_challenge":{"challenge_token":"c","available_factors":["a\nb",7,"totp"],"#
                    + #""expires_at":"2026-04-20T09:00:30Z"}}"#,
                .challenged(["a b", "totp"], until: Example.moment(30).wall)
            ),
            (
                // A clock that is ahead makes no challenge expire.
                #"{"mfa_challenge":{"challenge_token":"c","expires_at":"2026-04-20T08:00:00Z"}}"#,
                .challenged([], until: Example.moment(301).wall)
            ),
            (#"{"requires_mfa_challenge":false}"#, .failed(.serverError)),
            (#"{"access_token":"a","expires_in":9}"#, .notNative("a")),
            (#"{"data":{"access_token":"a b"}}"#, .notNative(nil)),
            ("<html>", .failed(.serverError)), ("", .failed(.serverError)),
        ]
        for (body, expected) in rows {
            #expect(classed(Example.answer(200, body)) == expected)
        }
    }

    @Test("Every other status, with the envelope and without", arguments: 300..<600)
    func failures(_ status: Int) {
        let withEnvelope: Class =
            switch status {
            case 429: .failed(.throttled)
            case 400..<500: .rejected("no")
            case 500..<600: .failed(.serverError)
            default: .failed(.somebodyInBetween)
            }
        let without: Class =
            switch status {
            case 429: .failed(.throttled)
            case 408, 500..<600: .failed(.serverError)
            default: .failed(.somebodyInBetween)
            }
        #expect(classed(Example.envelope(status)) == withEnvelope)
        #expect(classed(Example.answer(status, "<html>")) == without)
    }

    @Test("What a sign-in was refused for is told by its code where the server's words repeat it")
    func withheld() {
        let rows: [(status: Int, code: String?, words: String)] = [
            (
                401, "auth.invalid_credentials",
                "the email address or the password is wrong (401, auth.invalid_credentials)"
            ),
            (401, "mfa.invalid_code", "the code is wrong (401, mfa.invalid_code)"),
            (
                401, "auth.novel",
                "the email address, the password, the code or the key is wrong (401, auth.novel)"
            ),
            (401, nil, "the email address, the password, the code or the key is wrong (401)"),
            (422, "x.y", "the server refuses the sign-in (422, x.y)"),
        ]
        for (status, code, words) in rows {
            let code = code.map { "\"\($0)\"" } ?? "null"
            let body =
                #"{"error":{"statusCode":\#(status),"code":\#(code),"message":"Wrong: open sesame"}}"#
            func rejection(_ secret: String) -> Class {
                classed(
                    .answered(
                        CanopyAnswer(
                            status: status, retryAfter: nil, date: nil, body: Example.secret(body),
                            secrets: [Example.secret(secret)])))
            }
            #expect(
                rejection("open sesame")
                    == .rejected(
                        words + " (its words repeat a secret that was sent, and are withheld)"))
            #expect(rejection("something else") == .rejected("Wrong: open sesame"))
        }
    }

    @Test("A wait that is told is passed on")
    func wait() {
        let meaning = SignInMeaning(
            Example.answer(429, "", retryAfter: "30"), sent: Example.stamp(),
            now: Example.moment(1), memory: .ordinary)
        guard case .failed(let failure) = meaning else {
            Issue.record("not failed")
            return
        }
        #expect(failure.wait == .seconds(30))
        #expect(classed(.notSent("x")) == .failed(.notPresented))
        #expect(classed(.lost("x")) == .failed(.noAnswer))
    }
}

@Suite("A body is looked into where Canopy puts things")
struct CanopyBodyTests {
    private func with<Value>(
        _ text: String, status: Int = 200, _ look: (CanopyBody) -> Value
    ) -> Value {
        let answer = CanopyAnswer(
            status: status, retryAfter: nil, date: nil, body: Example.secret(text))
        return answer.body.withBytes { look(CanopyBody($0, of: answer)) }
    }

    @Test("A collection is in items, in data, in both, or bare")
    func lists() {
        for body in [
            #"{"items":[1,2]}"#, #"{"data":[1,2]}"#, #"{"data":{"items":[1,2]}}"#, "[1,2]",
        ] {
            #expect(with(body) { $0.list?.count } == 2)
        }
        for body in ["{}", "7", "", #"{"items":{}}"#, #"{"data":{"items":7}}"#] {
            #expect(with(body) { $0.list?.count } == nil)
        }
    }

    @Test("No control character of a server reaches a terminal, and the code is the envelope's")
    func printable() {
        for scalar in Array(0..<0x20) + Array(0x7F..<0xA0) {
            let hex = String(scalar, radix: 16)
            let escape = "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            let body = #"{"error":{"statusCode":400,"code":"c\#(escape)","message":"m\#(escape)"}}"#
            #expect(with(body, status: 400) { $0.words } == "m ")
            #expect(with(body, status: 400) { $0.code } == "c ")
            #expect(with(body, status: 401) { $0.words } == nil)
            #expect(with(body, status: 401) { $0.code } == nil)
        }
        #expect(
            with(#"{"error":{"statusCode":400,"code":7}}"#, status: 400) { $0.words }
                == "no message")
    }
}

@Suite("How long a token is good, by what came with it")
struct GrantTests {
    /// A token whose claims are these; base64url as a JWT has it.
    private static func jwt(_ claims: String) -> String {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var encoded: [UInt8] = []
        var bits: UInt32 = 0
        var held = 0
        for byte in claims.utf8 {
            bits = bits << 8 | UInt32(byte)
            held += 8
            while held >= 6 {
                held -= 6
                encoded.append(alphabet[Int(bits >> UInt32(held) & 63)])
            }
        }
        if held > 0 { encoded.append(alphabet[Int(bits << UInt32(6 - held) & 63)]) }
        return "e30." + String(decoding: encoded, as: UTF8.self) + ".c2ln"
    }

    private func life(
        _ token: String, expiresIn: Int?, date: String? = nil
    ) -> AccessTokenLife? {
        let expiry = expiresIn.map { #","expires_in":\#($0)"# } ?? ""
        let meaning = RefreshMeaning(
            Example.answer(
                200, #"{"refresh_token":"r","access_token":"\#(token)"\#(expiry)}"#, date: date),
            sent: Example.stamp(), now: Example.moment(1), memory: .ordinary)
        guard case .rotated(let grant) = meaning else { return nil }
        return grant.accessToken?.life
    }

    // 2026-04-20T09:00:00Z is 1776675600, when the request is sent.
    private static let sent = 1_776_675_600

    @Test("expires_in says the lifetime, else the claims do, else nobody does")
    func lifetime() {
        let claims = Self.jwt(#"{"iat":\#(Self.sent),"exp":\#(Self.sent + 600)}"#)
        #expect(life("opaque", expiresIn: 900)?.lifetime == .seconds(900))
        #expect(life(claims, expiresIn: 900)?.lifetime == .seconds(900))
        #expect(life(claims, expiresIn: nil)?.lifetime == .seconds(600))
        #expect(life("opaque", expiresIn: nil) == nil)
        #expect(life(Self.jwt(#"{"exp":\#(Self.sent)}"#), expiresIn: nil) == nil)
        let backwards = Self.jwt(#"{"iat":\#(Self.sent),"exp":\#(Self.sent - 1)}"#)
        #expect(life(backwards, expiresIn: nil) == nil)
    }

    @Test("A claim shortens what expires_in says, and never lengthens it")
    func claims() {
        // A date is in whole seconds: the server's clock may be almost a second further.
        for (exp, remaining) in [(600, 599), (900, 899), (901, 900), (3600, 900)] {
            let token = Self.jwt(#"{"exp":\#(Self.sent + exp)}"#)
            let life = life(token, expiresIn: 900, date: "Mon, 20 Apr 2026 09:00:00 GMT")
            #expect(
                life?.remaining(at: Example.moment(), boot: Example.boot)
                    == .seconds(Int64(remaining)))
        }
    }

    @Test("A wrong clock of ours is corrected by the server's Date, or by the token's own iat")
    func clockOffset() {
        // The server is a day ahead of us.
        let day = 86_400
        let claims =
            #"{"iat":\#(Self.sent + day),"exp":\#(Self.sent + day + 600)}"#
        let dated = life(
            Self.jwt(claims), expiresIn: 900, date: "Tue, 21 Apr 2026 09:00:00 GMT")
        // Rounded up: the server's whole seconds are rounded down, and so is `exp`.
        #expect(dated?.serverClockOffset == .seconds(Int64(day + 1)))
        let undated = life(Self.jwt(claims), expiresIn: 900)
        #expect(undated?.serverClockOffset == .seconds(Int64(day + 1)))
        for life in [dated, undated] {
            #expect(
                life?.remaining(at: Example.moment(60), boot: Example.boot) == .seconds(539))
            #expect(life?.expiresAt == WallTime(seconds: Int64(Self.sent + 599)))
        }
        // Set back by an hour, our clock does not stretch what `exp` had left at the sending.
        let setBack = Moment(
            boot: Example.moment(599).boot, wall: Example.moment(599).wall + .seconds(-3600))
        #expect(dated?.remaining(at: setBack, boot: Example.boot) == .zero)
        let unknown = life(Self.jwt(#"{"exp":\#(Self.sent + 1)}"#), expiresIn: 900)
        #expect(unknown?.serverClockOffset == nil)
        #expect(unknown?.remaining(at: Example.moment(60), boot: Example.boot) == .seconds(840))
    }

    @Test("Claims are read from three parts of base64url JSON, and from nothing else")
    func jwtForms() {
        func claims(_ token: String) -> JWTClaims? {
            JWTClaims(Example.secret(token), in: .ordinary)
        }
        let good = Self.jwt(#"{"iat":1.5,"exp":2}"#)
        #expect(claims(good)?.issuedAt == WallTime(milliseconds: 1500))
        #expect(claims(good)?.expiry == WallTime(milliseconds: 2000))
        #expect(claims(good)?.lifetime == .milliseconds(500))
        #expect(claims(Self.jwt("{}"))?.lifetime == nil)
        for value in ["-1", "0", "1e300", "253402300800", "\"5\"", "null", "[]"] {
            #expect(claims(Self.jwt(#"{"exp":\#(value)}"#)).map { $0.expiry == nil } == true)
        }
        for token in [
            "", ".", "..", "a.b", "a..c", "e30.e30", good + ".x", good + ".x.y", "e30.!!.c",
            "e30.e30=.c", "e30.e3 0.c", Self.jwt("[]"), Self.jwt("7"), Self.jwt("{"), "e30.e.c",
        ] {
            #expect(claims(token) == nil)
        }
    }
}

@Suite("Nothing expired leaves")
struct AccessTokenLifeTests {
    @Test(
        "A server whose clock is off by an hour, or a year, either way, costs no second of a token",
        arguments: [-3600, 3600, -31_536_000, 31_536_000] as [Double])
    func offset(_ offset: Double) {
        // `exp` is on the server's clock.
        let life = Example.life(900, expiry: 900 + offset, offset: offset)
        for second in [0.0, 1, 450, 899, 900, 901] {
            #expect(
                life.remaining(at: Example.moment(second), boot: Example.boot)
                    == Example.span(900 - second), "\(second) s")
        }
        #expect(life.expiresAt == Example.moment(900).wall)
        // And our own clock, set wrong after that, is what cuts it short.
        #expect(
            life.remaining(at: Example.moment(60, wallStep: 800), boot: Example.boot)
                == Example.span(40))
    }

    private func remaining(
        _ life: AccessTokenLife, _ seconds: Double, wallStep: Double = 0,
        boot: BootID = Example.boot
    ) -> Double {
        life.remaining(at: Example.moment(seconds, wallStep: wallStep), boot: boot).seconds
    }

    @Test("At its expiry a token is over, to the nanosecond")
    func boundary() {
        let life = Example.life(900)
        let expiry = BootTime(nanoseconds: 1_900_000_000_000)
        for (offset, isGood) in [(-1, true), (0, false), (1, false)] as [(Int64, Bool)] {
            let now = Moment(
                boot: BootTime(nanoseconds: expiry.nanoseconds + offset),
                wall: Example.moment(900).wall)
            #expect((life.remaining(at: now, boot: Example.boot) > .zero) == isGood)
        }
    }

    @Test("The earlier of the two clocks counts, however the wall clock is stepped")
    func wallClock() {
        let life = Example.life(900, expiry: 900, offset: 0)
        #expect(remaining(life, 100) == 800)
        // Ahead: the token seems over, and is not handed out.
        #expect(remaining(life, 100, wallStep: 900) < 0)
        // Back: the boot clock still counts.
        #expect(remaining(life, 100, wallStep: -1e6) == 800)
        #expect(remaining(life, 900, wallStep: -1e6) == 0)
    }

    @Test("A wall clock that nobody compared to the server's does not count")
    func uncomparedClock() {
        let life = Example.life(900, expiry: -1e6)
        #expect(remaining(life, 100, wallStep: 1e6) == 800)
    }

    @Test("Under another boot nothing is known of a token's age")
    func otherBoot() {
        #expect(remaining(Example.life(), 0, boot: Example.otherBoot) < 0)
        #expect(!Example.life().canServe(at: Example.moment(), boot: Example.otherBoot))
    }

    @Test("Who asks for nothing gets 30 s, or a quarter of a short lifetime")
    func standardValidity() {
        for (lifetime, validity) in [(900.0, 30.0), (120, 30), (60, 15), (4, 1)] {
            let life = Example.life(lifetime)
            #expect(life.standardValidity == Example.span(validity))
            #expect(
                life.canServe(at: Example.moment(lifetime - validity), boot: Example.boot))
            #expect(
                !life.canServe(
                    at: Example.moment(lifetime - validity + 0.001), boot: Example.boot))
        }
    }
}
