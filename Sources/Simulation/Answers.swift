internal import AgentCore

/// Canopy's answers, and other people's, as bytes.
enum Answers {
    /// Memory that costs nothing to give back: these secrets open nothing.
    static let memory = SecretMemory(
        allocate: { .allocate(byteCount: $0, alignment: 16) }, release: { $0.deallocate() })

    static func secret(_ text: String) -> Secret {
        var text = text
        return text.withUTF8 { Secret(copying: UnsafeRawBufferPointer($0), in: memory) }
    }

    static func refreshToken(_ number: Int) -> String { "r\(number)" }

    /// The number of a refresh token; traps for what no server of ours has issued.
    static func number(_ token: Secret) -> Int {
        token.withBytes { bytes in
            precondition(bytes.count > 1 && bytes[0] == UInt8(ascii: "r"), "a token of nobody's")
            var number = 0
            for index in 1..<bytes.count { number = number * 10 + Int(bytes[index] - 48) }
            return number
        }
    }

    /// An access token, as a JWT or opaque, that says in its last part when it expires, in
    /// milliseconds, and whose it is.
    static func accessToken(
        of family: Int, issued: WallTime, lifetime: Int64, isJWT: Bool
    ) -> String {
        precondition(family < families, "more sessions than an access token can tell")
        guard isJWT else {
            return "o.\((issued.milliseconds + lifetime * 1000) * families + Int64(family))"
        }
        let expiry = issued.seconds + lifetime
        let claims = base64("{\"iat\":\(issued.seconds),\"exp\":\(expiry)}")
        return "e30.\(claims).\(expiry * 1000 * families + Int64(family))"
    }

    /// Sessions that an access token can tell apart; an episode has some dozens.
    private static let families: Int64 = 4096

    /// When the server will refuse the access token.
    static func expiry(of token: Secret) -> WallTime {
        WallTime(milliseconds: lastPart(of: token) / families)
    }

    /// The number of the family that the access token is of.
    static func family(of token: Secret) -> Int {
        Int(lastPart(of: token) % families)
    }

    private static func lastPart(of token: Secret) -> Int64 {
        token.withBytes { bytes in
            var value: Int64 = 0
            var factor: Int64 = 1
            var index = bytes.count - 1
            while bytes[index] != UInt8(ascii: ".") {
                value += Int64(bytes[index] - 48) * factor
                // The last digit's factor is not used any more, and would not fit.
                if bytes[index - 1] != UInt8(ascii: ".") { factor *= 10 }
                index -= 1
            }
            return value
        }
    }

    static func grant(
        refreshToken: Int, accessToken: String?, lifetime: Int64?, isWrapped: Bool
    ) -> String {
        var body = isWrapped ? "{\"data\":{" : "{"
        if let accessToken {
            body += "\"access_token\":\"\(accessToken)\",\"token_type\":\"Bearer\","
        }
        if let lifetime { body += "\"expires_in\":\(lifetime)," }
        body += "\"refresh_token\":\"r\(refreshToken)\""
        return body + (isWrapped ? "}}" : "}")
    }

    static func envelope(_ status: Int) -> String {
        "{\"error\":{\"statusCode\":\(status),\"code\":null,\"message\":\"no\"}}"
    }

    static let portal = "<html><body>Welcome to the hotel</body></html>"

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func httpDate(_ time: WallTime) -> String {
        // The weekday is for people; no reader checks it.
        let text = Timestamp.rfc3339(time)
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let parts = text.split { "-T:Z".contains($0) }
        guard parts.count == 6, let month = Int(parts[1]) else {
            preconditionFailure("RFC 3339 has six parts")
        }
        return "Sun, \(parts[2]) \(months[month - 1]) \(parts[0]) "
            + "\(parts[3]):\(parts[4]):\(parts[5]) GMT"
    }

    private static func base64(_ text: String) -> String {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var result: [UInt8] = []
        var bits: UInt32 = 0
        var held = 0
        for byte in text.utf8 {
            bits = bits << 8 | UInt32(byte)
            held += 8
            while held >= 6 {
                held -= 6
                result.append(alphabet[Int(bits >> UInt32(held) & 63)])
            }
        }
        if held > 0 { result.append(alphabet[Int(bits << UInt32(6 - held) & 63)]) }
        return String(decoding: result, as: UTF8.self)
    }
}
