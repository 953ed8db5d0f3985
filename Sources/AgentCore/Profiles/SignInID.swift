/// Names one sign-in: 128 random bits as 32 hexadecimal digits, drawn when the user signs in.
///
/// Generations count within a sign-in, so two tokens compare under the same id alone.
package struct SignInID: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// Returns nil for anything but 32 lower-case hexadecimal digits.
    package init?(_ text: String) {
        guard text.utf8.count == 32 else { return nil }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"):
                continue
            default:
                return nil
            }
        }
        self.text = text
    }

    /// Makes an id of 128 bits that the caller drew.
    package init(high: UInt64, low: UInt64) {
        text = SignInID.hexadecimal(high) + SignInID.hexadecimal(low)
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    package var description: String { text }
}
