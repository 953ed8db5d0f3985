/// A local name for one signed-in Canopy identity in one environment of one server.
///
/// 1 to 64 characters of `a-z A-Z 0-9 . _ -`, not starting with `.` or `-`: a name is part of file
/// names and URL paths, and needs escaping in neither.
package struct ProfileName: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let text: String

    /// The name that is meant when none is given.
    package static let standard = ProfileName(checked: "default")

    /// Throws a ``Malformed`` that says what is wrong.
    package init(_ text: String) throws(Malformed) {
        guard let first = text.utf8.first else { throw .empty }
        guard text.utf8.count <= Limits.profileNameBytes else { throw .tooLong(text.utf8.count) }
        guard first != UInt8(ascii: "."), first != UInt8(ascii: "-") else { throw .badStart }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "-"):
                continue
            default:
                throw .badCharacter
            }
        }
        self.text = text
    }

    private init(checked text: String) {
        self.text = text
    }

    package var description: String { text }

    package static func < (left: ProfileName, right: ProfileName) -> Bool {
        left.text < right.text
    }

    /// Why a text is no profile name.
    package enum Malformed: Error, Equatable, CustomStringConvertible {
        case empty
        case tooLong(Int)
        case badStart
        case badCharacter

        package var description: String {
            let rule =
                "a profile name is 1 to \(Limits.profileNameBytes) characters of a-z A-Z 0-9 . _ - "
                + "and does not start with . or -"
            switch self {
            case .empty: return "the profile name is empty; \(rule)"
            case .tooLong(let count): return "the profile name has \(count) characters; \(rule)"
            case .badStart: return "the profile name starts with . or -; \(rule)"
            case .badCharacter:
                return "the profile name has a character that is not allowed; \(rule)"
            }
        }
    }
}
