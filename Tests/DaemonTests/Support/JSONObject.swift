import Foundation
import Testing

/// An object out of an answer; what is not there, or is something else, fails the test.
struct JSONObject {
    private let members: [String: Any]

    init(_ text: String) throws {
        let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
        members = try #require(value as? [String: Any], "an answer is no JSON object")
    }

    private init(members: [String: Any]) {
        self.members = members
    }

    func has(_ key: String) -> Bool { members[key] != nil }

    func text(_ key: String) throws -> String {
        try #require(members[key] as? String, "no text \(key) among \(members.keys.sorted())")
    }

    func number(_ key: String) throws -> Int {
        try #require(members[key] as? Int, "no number \(key) among \(members.keys.sorted())")
    }

    func truth(_ key: String) throws -> Bool {
        try #require(members[key] as? Bool, "no \(key) among \(members.keys.sorted())")
    }

    func strings(_ key: String) throws -> [String] {
        try #require(members[key] as? [String], "no strings \(key)")
    }

    func object(_ key: String) throws -> JSONObject {
        JSONObject(
            members: try #require(
                members[key] as? [String: Any], "no object \(key) in \(members.keys.sorted())"))
    }

    func objects(_ key: String) throws -> [JSONObject] {
        try #require(members[key] as? [[String: Any]], "no array \(key)")
            .map(JSONObject.init(members:))
    }
}
