import Foundation
import Testing

/// docs/openapi.json, and what it says of an answer.
struct OpenAPIDocument: Sendable {
    private let root: JSONTree

    /// A resource and a method that it takes.
    struct Operation: Sendable {
        let id: String
        let path: String
        let method: String
        fileprivate let description: JSONTree

        /// The statuses that it may be answered with.
        var statuses: Set<Int> { Set(description["responses"].members.keys.compactMap { Int($0) }) }
    }

    private static let loaded = Result { try OpenAPIDocument() }

    /// The document of this working copy.
    static func checked() throws -> OpenAPIDocument { try loaded.get() }

    private init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/openapi.json")
        root = try JSONDecoder().decode(JSONTree.self, from: Data(contentsOf: file))
    }

    /// Every operation; HEAD, which goes wherever GET does, is not one of its own.
    var operations: [Operation] {
        root["paths"].members.flatMap { path, item in
            item.members.map { method, description in
                Operation(
                    id: description["operationId"].text ?? "", path: path,
                    method: method.uppercased(), description: description)
            }
        }
    }

    /// The codes of problems.
    var codes: Set<String> {
        Set(root["components"]["schemas"]["Problem"]["properties"]["code"]["enum"].texts)
    }

    /// What the doctor may have looked at.
    var checks: Set<String> {
        let findings = root["components"]["schemas"]["Findings"]["properties"]["findings"]
        return Set(findings["items"]["properties"]["check"]["enum"].texts)
    }

    func operation(_ method: String, _ target: String) -> Operation? {
        let path = target.prefix { $0 != "?" }.split(separator: "/")
        return operations.first { operation in
            let pattern = operation.path.split(separator: "/")
            return operation.method == (method == "HEAD" ? "GET" : method)
                && pattern.count == path.count
                && zip(pattern, path).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
    }

    /// Fails the test for what the document does not say of an answer.
    func expect(
        _ answer: RawClient.Answer, to method: String, _ target: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let faults = faults(of: answer, to: method, target)
        #expect(faults.isEmpty, "\(method) \(target)", sourceLocation: sourceLocation)
    }

    private func faults(
        of answer: RawClient.Answer, to method: String, _ target: String
    ) -> [String] {
        let headers = answer.headers
        guard let operation = operation(method, target) else {
            // No resource, or not this method: the problem that says so is all that can come.
            return [400, 403, 404, 405, 413, 431, 503].contains(answer.status)
                ? schemaFaults(answer, resolved(["$ref": "#/components/schemas/Problem"]))
                : ["status \(answer.status) to what is not in the document"]
        }
        let response = resolved(operation.description["responses"]["\(answer.status)"])
        guard !response.isNull else { return ["\(operation.id): status \(answer.status)"] }
        var faults: [String] = []
        for (name, header) in response["headers"].members {
            guard let value = headers[name.lowercased()] else {
                if header["required"] == .bool(true) { faults.append("no \(name)") }
                continue
            }
            let isNumber = header["schema"]["type"].text == "integer"
            let tree = isNumber ? Double(value).map(JSONTree.number) : .string(value)
            faults += validate(tree ?? .string(value), header["schema"], "header \(name)")
        }
        let contents = response["content"].members
        guard !contents.isEmpty else {
            return answer.body.isEmpty && headers["content-type"] == nil
                ? faults : faults + ["a body where there is to be none"]
        }
        let type = headers["content-type"]?.split(separator: ";").first.map(String.init) ?? ""
        guard let content = contents[type] else { return faults + ["content type \(type)"] }
        guard method != "HEAD" else { return faults }
        return faults + schemaFaults(answer, content["schema"])
    }

    private func schemaFaults(_ answer: RawClient.Answer, _ schema: JSONTree) -> [String] {
        let type = answer.headers["content-type"] ?? ""
        guard type.contains("json") else {
            return validate(.string(answer.body), schema, "the body")
        }
        guard let body = try? JSONDecoder().decode(JSONTree.self, from: Data(answer.body.utf8))
        else { return ["the body is no JSON"] }
        return validate(body, schema, "the body")
    }

    /// What makes the text of an event's data no instance of a schema of the document.
    func faults(ofEventData data: String, schema: String) -> [String] {
        guard let tree = try? JSONDecoder().decode(JSONTree.self, from: Data(data.utf8)) else {
            return ["the data is no JSON"]
        }
        return validate(tree, ["$ref": .string("#/components/schemas/\(schema)")], "the data")
    }

    // MARK: JSON Schema, as far as the document uses it

    private func resolved(_ tree: JSONTree) -> JSONTree {
        guard let reference = tree["$ref"].text else { return tree }
        return reference.dropFirst(2).split(separator: "/").reduce(root) { $0[String($1)] }
    }

    private func validate(_ value: JSONTree, _ schema: JSONTree, _ place: String) -> [String] {
        let schema = resolved(schema)
        guard !schema.isNull else { return ["\(place): no schema"] }
        return schema.members.flatMap { keyword, rule in
            faults(of: value, keyword, rule, in: schema, place)
        }
    }

    private func faults(
        of value: JSONTree, _ keyword: String, _ rule: JSONTree, in schema: JSONTree,
        _ place: String
    ) -> [String] {
        func fault(unless isGood: Bool) -> [String] { isGood ? [] : ["\(place): \(keyword)"] }
        switch keyword {
        case "type": return fault(unless: value.isOf(type: rule.text ?? ""))
        case "enum": return fault(unless: rule.elements.contains(value))
        case "const": return fault(unless: rule == value)
        case "minimum": return fault(unless: value.number.map { $0 >= rule.number ?? 0 } ?? true)
        case "maximum": return fault(unless: value.number.map { $0 <= rule.number ?? 0 } ?? true)
        case "minLength":
            return fault(
                unless: value.text.map { Double($0.unicodeScalars.count) >= rule.number ?? 0 }
                    ?? true)
        case "pattern":
            guard let text = value.text, let pattern = try? Regex(rule.text ?? "") else {
                return fault(unless: value.text == nil)
            }
            return fault(unless: text.firstMatch(of: pattern) != nil)
        case "format":
            return fault(unless: rule.text == "date-time" && schema["pattern"].text != nil)
        case "allOf": return rule.elements.flatMap { validate(value, $0, place) }
        case "items":
            return value.elements.flatMap { validate($0, rule, place + "[]") }
        case "required": return rule.texts.flatMap { fault(unless: !value[$0].isNull) }
        case "properties":
            return rule.members.flatMap { name, rule in
                value.members[name].map { validate($0, rule, "\(place).\(name)") } ?? []
            }
        case "additionalProperties":
            let known = schema["properties"].members
            return value.members.keys.filter { known[$0] == nil }.map { "\(place).\($0) is new" }
        case "description", "examples", "default": return []
        default: return ["\(place): the keyword \(keyword) is not understood"]
        }
    }
}

/// A JSON document as a value.
enum JSONTree: Decodable, Equatable, Sendable, ExpressibleByDictionaryLiteral,
    ExpressibleByStringLiteral
{
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONTree])
    case object([String: JSONTree])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONTree].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONTree].self))
        }
    }

    init(dictionaryLiteral elements: (String, JSONTree)...) {
        self = .object(Dictionary(uniqueKeysWithValues: elements))
    }

    init(stringLiteral value: String) { self = .string(value) }

    /// A member; null where there is none.
    subscript(key: String) -> JSONTree { members[key] ?? .null }

    var isNull: Bool { self == .null }

    var members: [String: JSONTree] {
        if case .object(let members) = self { members } else { [:] }
    }

    var elements: [JSONTree] {
        if case .array(let elements) = self { elements } else { [] }
    }

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var texts: [String] { elements.compactMap(\.text) }

    var number: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    func isOf(type: String) -> Bool {
        switch self {
        case .null: type == "null"
        case .bool: type == "boolean"
        case .number(let number):
            type == "number" || type == "integer" && number == number.rounded()
        case .string: type == "string"
        case .array: type == "array"
        case .object: type == "object"
        }
    }
}

extension RawClient.Answer {
    /// By name in lower case.
    var headers: [String: String] {
        var headers: [String: String] = [:]
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        return headers
    }
}
