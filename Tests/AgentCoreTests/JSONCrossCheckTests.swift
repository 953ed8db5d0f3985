import AgentCore
import Foundation
import Testing

/// The same documents, by another implementation.
@Suite("JSON agrees with Foundation")
struct JSONCrossCheckTests {
    @Test("What Foundation writes reads as what was meant", arguments: 1...4)
    func reading(_ seed: UInt64) throws {
        var chance = SeededGenerator(seed: seed)
        for round in 0..<150 {
            let tree = Tree.random(depth: 4, using: &chance)
            let options: JSONSerialization.WritingOptions =
                round % 2 == 0 ? [.fragmentsAllowed] : [.fragmentsAllowed, .prettyPrinted]
            let data = try JSONSerialization.data(withJSONObject: tree.object, options: options)
            try withExactCopy(of: [UInt8](data)) { bytes in
                let read = Tree(try JSONReader.parse(bytes))
                #expect(read == tree)
            }
        }
    }

    @Test("What is written here, Foundation reads as what was meant", arguments: 11...14)
    func writing(_ seed: UInt64) throws {
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<150 {
            let tree = Tree.random(depth: 4, using: &chance)
            var writer = JSONWriter(into: [UInt8]())
            tree.write(to: &writer)
            let bytes = writer.finish()
            let object = try JSONSerialization.jsonObject(
                with: Data(bytes), options: .fragmentsAllowed)
            #expect(Tree(object) == tree)
            try withExactCopy(of: bytes) {
                let read = Tree(try JSONReader.parse($0))
                #expect(read == tree)
            }
        }
    }

    @Test("What is accepted here, Foundation accepts too", arguments: 21...24)
    func mutations(_ seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var accepted = 0
        let whole = Array(
            #"{"a":[1.5e+3,-0,"\u00e9\ud83d\ude00ü\n"],"b":{"c":null},"d":true}"#.utf8)
        for _ in 0..<4000 {
            let bytes = chance.mutated(whole)
            guard jsonFault(bytes) == nil else { continue }
            accepted += 1
            #expect(throws: Never.self) {
                // Foundation has no number for some that RFC 8259 writes, such as 1e999.
                guard !bytes.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) else { return }
                _ = try JSONSerialization.jsonObject(
                    with: Data(bytes), options: .fragmentsAllowed)
            }
        }
        // Else the walk has left the ground that it is to cover.
        #expect(accepted > 50)
    }
}

/// A JSON document as a value that compares.
private indirect enum Tree: Equatable {
    case object([String: Tree])
    case array([Tree])
    case string(String)
    case integer(Int64)
    case fraction(Double)
    case bool(Bool)
    case null

    static func random(depth: Int, using chance: inout SeededGenerator) -> Tree {
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &chance) {
        case 0: return .null
        case 1: return .bool(.random(using: &chance))
        case 2:
            return .integer(
                [.min, .max, 0, .random(in: .min ... .max, using: &chance)]
                    .randomElement(using: &chance) ?? 0)
        // Half a step off the integers, so that none looks like one.
        case 3: return .fraction(Double(Int32.random(in: .min ... .max, using: &chance)) + 0.5)
        case 4, 5: return .string(randomText(using: &chance))
        case 6, 7:
            let count = Int.random(in: 0...4, using: &chance)
            return .array((0..<count).map { _ in .random(depth: depth - 1, using: &chance) })
        default:
            var members: [String: Tree] = [:]
            for _ in 0..<Int.random(in: 0...4, using: &chance) {
                members[randomText(using: &chance)] = .random(depth: depth - 1, using: &chance)
            }
            return .object(members)
        }
    }

    private static func randomText(using chance: inout SeededGenerator) -> String {
        var text = ""
        let ranges: [ClosedRange<UInt32>] = [
            0x00...0x7F, 0x20...0x7E, 0x80...0x7FF, 0x800...0xD7FF, 0xE000...0xFFFD,
            0x10000...0x10FFFF,
        ]
        for _ in 0..<Int.random(in: 0...12, using: &chance) {
            guard let range = ranges.randomElement(using: &chance),
                let scalar = Unicode.Scalar(UInt32.random(in: range, using: &chance))
            else { continue }
            text.unicodeScalars.append(scalar)
        }
        return text
    }

    var object: Any {
        switch self {
        case .object(let members): members.mapValues(\.object)
        case .array(let elements): elements.map(\.object)
        case .string(let text): text
        case .integer(let number): NSNumber(value: number)
        case .fraction(let number): NSNumber(value: number)
        case .bool(let flag): NSNumber(value: flag)
        case .null: NSNull()
        }
    }

    /// What Foundation read.
    init?(_ object: Any) {
        switch object {
        case let members as [String: Any]:
            self = .object(members.compactMapValues(Tree.init))
        case let elements as [Any]: self = .array(elements.compactMap(Tree.init))
        case let text as String: self = .string(text)
        case is NSNull: self = .null
        case let flag as Bool where isBoolean(object): self = .bool(flag)
        case let number as NSNumber:
            // Large ones are decimal numbers, which `as Int64` does not always take.
            let rest = number.doubleValue.truncatingRemainder(dividingBy: 1)
            self = rest == 0 ? .integer(number.int64Value) : .fraction(number.doubleValue)
        default: return nil
        }
    }

    /// What is read here.
    init(_ value: JSONValue) {
        switch value.kind {
        case .object:
            var members: [String: Tree] = [:]
            for (key, member) in value.members { members[key] = Tree(member) }
            self = .object(members)
        case .array: self = .array(value.elements.map { Tree($0) })
        case .string: self = .string(value.string ?? "not decoded")
        case .number:
            self = value.int.map(Tree.integer) ?? .fraction(value.double ?? .nan)
        case .bool: self = .bool(value.bool ?? false)
        case .null: self = .null
        }
    }

    func write(to writer: inout JSONWriter<[UInt8]>) {
        switch self {
        case .object(let members):
            writer.beginObject()
            for (key, member) in members {
                writer.key(key)
                member.write(to: &writer)
            }
            writer.endObject()
        case .array(let elements):
            writer.beginArray()
            for element in elements { element.write(to: &writer) }
            writer.endArray()
        case .string(let text): writer.string(text)
        case .integer(let number): writer.number(number)
        case .fraction(let number): writer.number(number)
        case .bool(let flag): writer.bool(flag)
        case .null: writer.null()
        }
    }
}

/// Whether it is one of Foundation's two booleans, which are numbers too.
private func isBoolean(_ object: Any) -> Bool {
    guard let number = object as? NSNumber else { return object is Bool }
    return number === NSNumber(value: true) || number === NSNumber(value: false)
        || String(cString: number.objCType) == "c"
}
