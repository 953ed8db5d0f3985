internal import AgentCore
internal import CLinux
internal import SandboxRules

/// Makes tokens, and reads refresh tokens back.
///
/// It remembers none: a refresh token's text is its id and a check that only this process can
/// compute. Everything it makes opens this sandbox alone, and dies with the process: text, not
/// ``Secret``.
struct TokenMint {
    /// The least length of access tokens, in bytes.
    let accessTokenBytes: Int
    private let secret = random()
    /// What makes refresh tokens as long as they are to be.
    private let refreshPadding: String
    private var made: UInt64 = 0

    /// `accessTokenBytes` and `refreshTokenBytes` are the least lengths of tokens.
    init(accessTokenBytes: Int, refreshTokenBytes: Int) {
        self.accessTokenBytes = accessTokenBytes
        refreshPadding = String(
            repeating: "x", count: max(0, refreshTokenBytes - Self.leastRefreshBytes))
    }

    /// A new refresh token's id.
    mutating func refreshToken() -> RefreshTokenID {
        made += 1
        return RefreshTokenID(Self.shuffled(made &+ secret))
    }

    /// Another number for each number, without an order to be seen: the last step of SplitMix64.
    static func shuffled(_ number: UInt64) -> UInt64 {
        var z = number
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    private static let refreshPrefix = "crt_"

    /// The id of a refresh token that this mint has made, or might.
    func id(of text: String) -> RefreshTokenID? {
        guard text.hasPrefix(Self.refreshPrefix),
            text.utf8.count == Self.leastRefreshBytes + refreshPadding.utf8.count,
            let number = UInt64(text.suffix(16), radix: 16), self.text(of: .init(number)) == text
        else { return nil }
        return RefreshTokenID(number)
    }

    private static let leastRefreshBytes = refreshPrefix.utf8.count + 32 + 16

    /// A refresh token's text.
    func text(of id: RefreshTokenID) -> String {
        var check: [UInt8] = []
        for part in 0..<3 {
            // SipHash, under the process's own random key and one of ours.
            var hasher = Hasher()
            hasher.combine(secret)
            hasher.combine(id)
            hasher.combine(part)
            withUnsafeBytes(of: hasher.finalize()) { check.append(contentsOf: $0) }
        }
        return Self.refreshPrefix + Self.base64URL(check) + refreshPadding + Self.row(id)
    }

    /// The start of a refresh token's text: enough to recognise it, too little to use it.
    func prefix(of id: RefreshTokenID) -> String { String(text(of: id).prefix(12)) }

    /// The id as it stands in rows of the session list.
    static func row(_ id: RefreshTokenID) -> String {
        let digits = String(id.number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    static func id(row: String) -> RefreshTokenID? {
        guard row.utf8.count == 16, let number = UInt64(row, radix: 16) else { return nil }
        return RefreshTokenID(number)
    }

    /// The number of a sign-in that waits for a second factor.
    static func challenge() -> UInt64 { random() }

    /// A JWT in shape and claims; its signature is made up.
    func accessToken(
        issuer: String, identity: String, issuedAt: WallTime, expiresAt: WallTime
    ) -> String {
        let token = Self.accessToken(issuer, identity, issuedAt, expiresAt, padding: nil)
        let missing = accessTokenBytes - token.utf8.count
        guard missing > 0 else { return token }
        // Four characters of base64 carry three bytes.
        return Self.accessToken(
            issuer, identity, issuedAt, expiresAt,
            padding: String(repeating: "x", count: (missing * 3 + 3) / 4))
    }

    private static func accessToken(
        _ issuer: String, _ identity: String, _ issuedAt: WallTime, _ expiresAt: WallTime,
        padding: String?
    ) -> String {
        let head = #"{"alg":"RS256","typ":"JWT","kid":"sandbox"}"#
        var json = JSONWriter(into: [UInt8]())
        json.beginObject()
        json.member("iss", issuer)
        json.member("sub", identity)
        json.member("type", "identity")
        json.member("iat", issuedAt.seconds)
        json.member("exp", expiresAt.seconds)
        json.member("environment_id", Names.environment)
        json.member("jti", randomText(bytes: 9))
        json.member("padding", ifPresent: padding)
        json.endObject()
        // A signature of RS256 has 256 bytes with a key of 2048 bits.
        return base64URL(Array(head.utf8)) + "." + base64URL(json.finish()) + "."
            + randomText(bytes: 256)
    }

    private static func random() -> UInt64 {
        var number: UInt64 = 0
        withUnsafeMutableBytes(of: &number) { fill($0) }
        return number
    }

    private static func randomText(bytes count: Int) -> String {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { fill($0) }
        return base64URL(bytes)
    }

    private static func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        // Up to 256 bytes come whole and cannot be interrupted (getrandom(2)).
        let count = clinux_getrandom(bytes.baseAddress, bytes.count)
        precondition(count == bytes.count, "getrandom gave \(count) bytes of \(bytes.count)")
    }

    private static func base64URL(_ bytes: [UInt8]) -> String {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for byte in group { bits = bits << 8 | UInt32(byte) }
            bits <<= UInt32(8 * (3 - group.count))
            // No padding in base64url as JWTs have it.
            for index in 0...group.count {
                text.append(alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// Names that the sandbox makes up once.
enum Names {
    static let environment = "5f1c9a52-0000-4000-8000-0000000000e1"
    static let refreshCookie = "canopy_refresh_token"

    /// An identity's id, in the shape of Canopy's.
    static func identity(_ identity: IdentityID) -> String {
        let digits = String(identity.number + 1, radix: 16)
        return "5f1c9a52-0000-4000-8000-"
            + String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
    }
}
