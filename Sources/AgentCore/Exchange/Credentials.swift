/// What a sign-in sends, taken from the body of a login request (INTERFACE).
package struct Credentials: Sendable {
    /// The server; nil where the body leaves it to the configuration.
    package let baseURL: String?
    package let publishableKey: String?
    package let email: String
    package let password: Secret

    package enum Malformed: Error, Equatable, Sendable, CustomStringConvertible {
        case notAnObject
        case missing(StaticMember)

        package enum StaticMember: String, Sendable {
            case email
            case password
            case url
            case publishableKey = "publishable_key"
        }

        package var description: String {
            switch self {
            case .notAnObject:
                "the body must be a JSON object with email and password"
            case .missing(let member):
                "the body's \"\(member.rawValue)\" must be a string that is not empty"
            }
        }
    }

    package init(parsing body: Secret, in memory: SecretMemory) throws(Malformed) {
        let parsed = body.withBytes { bytes -> Result<Credentials, Malformed> in
            Result { () throws(Malformed) in try Credentials(bytes, memory) }
        }
        self = try parsed.get()
    }

    private init(_ bytes: UnsafeRawBufferPointer, _ memory: SecretMemory) throws(Malformed) {
        let root: JSONValue
        do throws(JSONFault) {
            root = try JSONReader.parse(bytes)
        } catch {
            throw .notAnObject
        }
        guard root.kind == .object else { throw .notAnObject }
        guard let email = root["email"]?.string, !email.isEmpty else { throw .missing(.email) }
        guard let password = root["password"]?.secret(in: memory), password.count > 0 else {
            throw .missing(.password)
        }
        self.email = email
        self.password = password
        // A default in place of what was meant would send the password somewhere else.
        baseURL = try Credentials.text(root["url"], .url)
        publishableKey = try Credentials.text(root["publishable_key"], .publishableKey)
    }

    private static func text(
        _ value: JSONValue?, _ member: Malformed.StaticMember
    ) throws(Malformed) -> String? {
        guard let value, !value.isNull else { return nil }
        guard let text = value.string, !text.isEmpty else { throw .missing(member) }
        return text
    }
}
