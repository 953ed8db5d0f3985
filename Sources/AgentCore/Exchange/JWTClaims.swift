/// The dates in an access token that is a JWT.
///
/// The signature is the resource servers' business; for us a claim can only shorten what
/// `expires_in` says.
package struct JWTClaims: Equatable, Sendable {
    package let expiry: WallTime?
    package let issuedAt: WallTime?

    /// Returns nil for anything but three dot-separated parts whose second is base64url JSON.
    package init?(_ token: Secret, in memory: SecretMemory) {
        let claims = token.withBytes { bytes -> (WallTime?, WallTime?)? in
            guard let payload = JWTClaims.payload(bytes, in: memory) else { return nil }
            return payload.withBytes { json -> (WallTime?, WallTime?)? in
                do throws(JSONFault) {
                    let root = try JSONReader.parse(json, brokenText: .repaired)
                    guard root.kind == .object else { return nil }
                    return (JWTClaims.date(root["exp"]), JWTClaims.date(root["iat"]))
                } catch {
                    // An opaque token may look like anything; it just has no dates for us.
                    return nil
                }
            }
        }
        guard let claims else { return nil }
        (expiry, issuedAt) = claims
    }

    /// How long the token was made for; nil if it does not say.
    package var lifetime: TimeSpan? {
        guard let expiry, let issuedAt, issuedAt < expiry else { return nil }
        return expiry - issuedAt
    }

    private static func date(_ value: JSONValue?) -> WallTime? {
        // RFC 7519 NumericDate: seconds, possibly with a fraction. Four-digit years only.
        guard let seconds = value?.double, seconds > 0, seconds < 253_402_300_800 else {
            return nil
        }
        return WallTime(milliseconds: Int64(seconds * 1000))
    }

    private static func payload(
        _ token: UnsafeRawBufferPointer, in memory: SecretMemory
    ) -> Secret? {
        let dot = UInt8(ascii: ".")
        guard let first = token.firstIndex(of: dot) else { return nil }
        let rest = token[(first + 1)...]
        guard let second = rest.firstIndex(of: dot) else { return nil }
        guard !token[(second + 1)...].contains(dot) else { return nil }
        let encoded = token[(first + 1)..<second]
        var valid = !encoded.isEmpty
        let payload = Secret(capacity: encoded.count, in: memory) { target in
            var count = 0
            var bits: UInt32 = 0
            var held = 0
            for byte in encoded {
                guard let value = sextet(byte) else {
                    valid = false
                    break
                }
                bits = bits << 6 | value
                held += 6
                if held >= 8 {
                    held -= 8
                    target[count] = UInt8(truncatingIfNeeded: bits >> UInt32(held))
                    count += 1
                }
            }
            return count
        }
        return valid ? payload : nil
    }

    private static func sextet(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - 65)
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - 71)
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte + 4)
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
