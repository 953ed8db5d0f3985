import Foundation
import Testing

/// A profile's item in the keyring, for tests that change it behind canopyd's back.
///
/// A test that fails shows nothing of what is in it.
struct StoredItem: CustomTestStringConvertible, CustomReflectable {
    private var members: [String: Any]
    private let attributes: [String]

    private static let schema = ["xdg:schema", "com.canopy-io.canopyd.session"]

    /// nil if there is none.
    init?(_ profile: String = "default", in desktop: PrivateDesktop) throws {
        let name = Self.schema + ["profile", profile]
        let found = try Program(
            "/usr/bin/secret-tool", ["search", "--all"] + name, environment: desktop.environment)
        try found.end()
        let machine = found.output.split(separator: "\n").first {
            $0.hasPrefix("attribute.machine = ")
        }
        guard let machine else { return nil }
        attributes = name + ["machine", String(machine.dropFirst("attribute.machine = ".count))]
        let secret = try Program(
            "/usr/bin/secret-tool", ["lookup"] + attributes, environment: desktop.environment)
        try #require(secret.end() == 0)
        let value = try JSONSerialization.jsonObject(with: Data(secret.output.utf8))
        members = try #require(value as? [String: Any])
    }

    func text(_ key: String) throws -> String { try #require(members[key] as? String) }
    var testDescription: String { "the item" }
    var customMirror: Mirror { Mirror(self, children: []) }

    /// Whether the refresh token is the same one, or the one given.
    func holds(tokenOf other: StoredItem) throws -> Bool { try holds(other.text("refresh_token")) }
    func holds(_ refreshToken: String) throws -> Bool {
        try text("refresh_token") == refreshToken
    }

    func has(_ key: String) -> Bool { members[key] != nil }

    mutating func set(_ key: String, _ value: String) { members[key] = value }
    mutating func set(_ key: String, _ value: Int) { members[key] = value }

    /// Puts it in the place of the one that is there.
    func store(in desktop: PrivateDesktop) throws {
        let bytes = try JSONSerialization.data(withJSONObject: members)
        let program = try Program(
            "/usr/bin/secret-tool", ["store", "--label=Canopy session"] + attributes,
            environment: desktop.environment, input: String(decoding: bytes, as: UTF8.self))
        try #require(program.end() == 0, "\(program.output)")
    }
}
