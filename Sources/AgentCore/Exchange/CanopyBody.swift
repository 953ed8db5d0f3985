/// The body of an answer, looked into where Canopy puts things: inside `data`, or bare.
///
/// A view: valid only while the bytes that it was made from are.
package struct CanopyBody {
    private let root: JSONValue?
    private let status: Int
    private let secrets: [Secret]

    /// `bytes` are the answer's body.
    package init(_ bytes: UnsafeRawBufferPointer, of answer: CanopyAnswer) {
        status = answer.status
        secrets = answer.secrets
        do throws(JSONFault) {
            root = try JSONReader.parse(
                bytes, maximumDepth: Limits.answerBodyBytes, brokenText: .repaired,
                end: answer.isCutOff ? .cutOff : .whole)
        } catch {
            // Not JSON is an answer too: a portal's page, a proxy's error. It has no members.
            root = nil
        }
    }

    /// The resource itself.
    package var resource: JSONValue? {
        guard let root, root.kind == .object else { return nil }
        if let data = root["data"], data.kind == .object { return data }
        return root
    }

    /// Whether it can be the answer to something that went well: an object, and nothing said to be
    /// wrong.
    package var isAnswer: Bool { resource != nil && root?["error"] == nil }

    /// A collection: `items`, or a list in `data`; nil for anything else.
    package var list: JSONValue? {
        guard let root else { return nil }
        for candidate in [root["items"], root["data"]?["items"], root["data"], root] {
            if let candidate, candidate.kind == .array { return candidate }
        }
        return nil
    }

    /// Whether it is Canopy's error envelope: an object whose `error` is an object with
    /// `statusCode` equal to the HTTP status.
    package var isEnvelope: Bool {
        guard let code = root?["error"]?["statusCode"]?.int else { return false }
        return code == Int64(status)
    }

    /// The server's message and details, for people; nil without an envelope.
    package var words: String? { message.map(shown) }

    /// Whether the server's words repeat a secret that it was sent, so that ``words`` says only that.
    package var areWordsWithheld: Bool { message.map(repeatsSecret) ?? false }

    private var message: String? {
        guard isEnvelope, let error = root?["error"] else { return nil }
        var words = error["message"]?.string ?? "no message"
        if let details = error["details"] {
            let listed = details.elements.compactMap(\.string).joined(separator: ", ")
            if !listed.isEmpty { words += ": " + listed }
        }
        return CanopyBody.start(of: words)
    }

    /// `error.code` where there is one: the stable field, not always there.
    package var code: String? {
        guard isEnvelope else { return nil }
        return root?["error"]?["code"]?.string.map(shown)
    }

    /// Whether there is something where a refresh token would be, readable or not.
    package var hasRefreshToken: Bool {
        guard let value = member("refresh_token") else { return false }
        return value.stringCount != 0
    }

    package var hasAccessToken: Bool {
        (member("access_token")?.stringCount ?? 0) > 0
    }

    /// A token: 1 byte to the limit, and no byte that could end a header line.
    package func token(_ key: StaticString, in memory: SecretMemory) -> Secret? {
        CanopyBody.token(member(key), in: memory)
    }

    private static func token(_ value: JSONValue?, in memory: SecretMemory) -> Secret? {
        guard let value, let count = value.stringCount, count > 0,
            count <= Limits.tokenBytes, let secret = value.secret(in: memory),
            secret.withBytes({ $0.allSatisfy { (0x21...0x7E).contains($0) } })
        else { return nil }
        return secret
    }

    package var tokenType: String? { member("token_type")?.string }

    /// `expires_in`; nil unless it is a positive number of seconds within the limit.
    package var lifetime: TimeSpan? {
        guard let seconds = member("expires_in")?.int,
            (1...Limits.tokenLifetimeSeconds).contains(seconds)
        else { return nil }
        return .seconds(seconds)
    }

    package var identity: Identity? {
        guard let identity = member("identity"), let id = identity["id"]?.string else {
            return nil
        }
        return Identity(id: id, email: identity["email"]?.string ?? "")
    }

    /// Whether a sign-in is not complete yet: the answer carries a challenge.
    package var wantsSecondFactor: Bool {
        member("requires_mfa_challenge")?.bool == true || member("mfa_challenge")?.kind == .object
    }

    /// The server's name for the challenge of a sign-in.
    package func challengeToken(in memory: SecretMemory) -> Secret? {
        guard let challenge = member("mfa_challenge") else { return nil }
        return CanopyBody.token(challenge["challenge_token"], in: memory)
    }

    /// The factors that the server takes, names that nobody knows yet included.
    package var challengeFactors: [String] {
        guard let factors = member("mfa_challenge")?["available_factors"] else { return [] }
        return factors.elements.compactMap(\.string).prefix(Limits.secondFactors)
            .map(shown)
    }

    /// When the challenge ends, by the server's clock.
    package var challengeExpiry: WallTime? {
        member("mfa_challenge")?["expires_at"]?.string.flatMap(Timestamp.wallTime(rfc3339:))
    }

    /// null is nothing, as it is in most APIs.
    private func member(_ key: StaticString) -> JSONValue? {
        for value in [resource?[key], root?[key]] {
            if let value, !value.isNull { return value }
        }
        return nil
    }

    /// A server's text on its way to a terminal or a log: no secret of ours, no control characters,
    /// and not endless.
    private func shown(_ text: String) -> String {
        let start = CanopyBody.start(of: text)
        guard !repeatsSecret(start) else {
            return "(its words repeat a secret that was sent, and are withheld)"
        }
        var result = ""
        for scalar in start.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            result.unicodeScalars.append(isControl ? " " : scalar)
        }
        return CanopyBody.withoutNumberedBytes(CanopyBody.withoutTokens(result))
    }

    private static func start(of text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(Limits.shownServerCharacters)))
    }

    private func repeatsSecret(_ text: String) -> Bool {
        secrets.contains { $0.isRepeated(in: text) }
    }

    /// Leaves out what may be a token in some encoding: no word is so long, and no UUID.
    private static func withoutTokens(_ text: String) -> String {
        var result = ""
        var run = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "0"..."9", "A"..."Z", "a"..."z", "+", "/", "=", "-", "_", "%", "\\":
                run.unicodeScalars.append(scalar)
            default:
                result += shortened(run)
                run = ""
                result.unicodeScalars.append(scalar)
            }
        }
        return result + shortened(run)
    }

    /// Leaves out what may be a token byte by byte, in any base: `[99, 114, 116]`, `63:72:74`.
    private static func withoutNumberedBytes(_ text: String) -> String {
        var result = ""
        // Numbers of one byte and what divides them, and the word that is being read.
        var run = ""
        var word = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case " ", ",", ";", ":", "-", "[", "]":
                if isNumberedByte(word) {
                    run += word
                } else if !word.isEmpty {
                    result += shortened(run) + word
                    run = ""
                }
                word = ""
                run.unicodeScalars.append(scalar)
            default:
                word.unicodeScalars.append(scalar)
            }
        }
        return isNumberedByte(word)
            ? result + shortened(run + word) : result + shortened(run) + word
    }

    private static func isNumberedByte(_ word: String) -> Bool {
        let digits = word.hasPrefix("0x") ? word.dropFirst(2) : word[...]
        return (1...3).contains(digits.utf8.count) && digits.allSatisfy(\.isHexDigit)
    }

    private static func shortened(_ run: String) -> String {
        run.utf8.count < Limits.shownWordBytes ? run : "…"
    }
}
