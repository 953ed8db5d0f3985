internal import AgentCore

/// The path and query of a request.
enum Target {
    static func token(_ profile: ProfileName, minimumValidity: Int?, timeout: Int?) -> String {
        // A profile name needs no escaping.
        var target = "/v1/token?profile=\(profile)"
        if let minimumValidity { target += "&min_validity=\(minimumValidity)" }
        if let timeout { target += "&timeout=\(timeout)" }
        return target
    }

    static func profile(_ profile: ProfileName, _ rest: String = "") -> String {
        "/v1/profiles/\(profile)\(rest)"
    }

    /// The bytes of `text` with all but RFC 3986's unreserved ones escaped.
    static func escape(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }
}
