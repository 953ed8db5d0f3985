import AgentCore
import Foundation
import Testing

/// The public suite at github.com/nst/JSONTestSuite: `y_` has to be accepted, `n_` refused, and
/// `i_` is the parser's own choice.
@Suite("JSON is read as RFC 8259 has it")
struct JSONConformanceTests {
    static let documents: [URL] = {
        guard
            let folder = Bundle.module.url(forResource: "JSONTestSuite", withExtension: nil),
            let files = try? FileManager.default.contentsOfDirectory(
                at: folder, includingPropertiesForKeys: nil)
        else { return [] }
        return files.filter { $0.pathExtension == "json" }
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
    }()

    @Test("The suite is there in full")
    func whole() {
        let kinds = Dictionary(grouping: Self.documents) { $0.lastPathComponent.prefix(2) }
        #expect(kinds["y_"]?.count == 95)
        #expect(kinds["n_"]?.count == 188)
        #expect(kinds["i_"]?.count == 35)
    }

    @Test("Every document is judged as the suite says", arguments: documents)
    func suite(_ file: URL) throws {
        let bytes = [UInt8](try Data(contentsOf: file))
        let fault = jsonFault(bytes)
        switch file.lastPathComponent.prefix(2) {
        case "y_": #expect(fault == nil)
        case "n_": #expect(fault != nil)
        // What the RFC leaves open and is not text in UTF-8 is refused. Numbers out of range are
        // numbers; nobody gets them as anything.
        default:
            let isNumber = file.lastPathComponent.hasPrefix("i_number")
            #expect((fault == nil) == isNumber)
        }
        if let fault { #expect((0...bytes.count).contains(fault.offset)) }
    }

    @Test("A hundred thousand brackets are refused, not recursed into")
    func deep() {
        for bracket in ["[", "{\"a\":"] {
            let deep = [UInt8](String(repeating: bracket, count: 100_000).utf8)
            #expect(jsonFault(deep)?.reason == .tooDeep)
            // Without the limit they are merely unfinished: no stack ends.
            #expect(jsonFault(deep, maximumDepth: .max)?.reason == .unexpectedEnd)
        }
    }

    @Test("Depth is counted, not guessed")
    func counted() {
        func nested(_ depth: Int) -> [UInt8] {
            [UInt8](repeating: UInt8(ascii: "["), count: depth)
                + [UInt8](repeating: UInt8(ascii: "]"), count: depth)
        }
        #expect(jsonFault(nested(Limits.jsonDepth)) == nil)
        #expect(
            jsonFault(nested(Limits.jsonDepth + 1))
                == JSONFault(.tooDeep, at: Limits.jsonDepth))
        // Siblings are not depth.
        let flat = "[" + Array(repeating: "[]", count: 1000).joined(separator: ",") + "]"
        #expect(jsonFault([UInt8](flat.utf8), maximumDepth: 2) == nil)
    }

    @Test(
        "A fault says what and where",
        arguments: [
            ("", JSONFault(.unexpectedEnd, at: 0)),
            ("\u{FEFF}{}", JSONFault(.byteOrderMark, at: 0)),
            ("{} x", JSONFault(.trailingBytes, at: 3)),
            ("1 2", JSONFault(.trailingBytes, at: 2)),
            ("[1,]", JSONFault(.unexpectedByte, at: 3)),
            ("{\"a\":1,}", JSONFault(.unexpectedByte, at: 7)),
            ("{,}", JSONFault(.unexpectedByte, at: 1)),
            ("[01]", JSONFault(.badNumber, at: 2)),
            ("-", JSONFault(.unexpectedEnd, at: 1)),
            ("\"\\x\"", JSONFault(.badEscape, at: 1)),
            ("\"\\ud83d\"", JSONFault(.loneSurrogate, at: 1)),
            ("\"\\ude00\"", JSONFault(.loneSurrogate, at: 1)),
            ("\"a\u{0}\"", JSONFault(.controlCharacter, at: 2)),
            ("tru", JSONFault(.unexpectedEnd, at: 3)),
            ("trux", JSONFault(.unexpectedByte, at: 3)),
        ])
    func faults(_ text: String, _ fault: JSONFault) {
        #expect(jsonFault([UInt8](text.utf8)) == fault)
    }

    @Test("A fault does not repeat the input")
    func silent() {
        #expect("\(JSONFault(.unexpectedByte, at: 17))" == "unexpected byte at 17")
    }

    @Test(
        "Invalid UTF-8 is refused in values and in names",
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x9F, 0x80], [0xED, 0xA0, 0x80],
            [0xF0, 0x8F, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF],
            [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98],
        ] as [[UInt8]])
    func utf8(_ bad: [UInt8]) {
        let quoted = [UInt8(ascii: "\"")] + bad + [UInt8(ascii: "\"")]
        #expect(jsonFault(quoted) == JSONFault(.invalidUTF8, at: 1))
        #expect(
            jsonFault([UInt8](#"{""#.utf8) + bad + [UInt8](#"":1}"#.utf8))
                == JSONFault(.invalidUTF8, at: 2))
    }

    @Test("Broken text costs itself alone where it is to be repaired")
    func brokenText() throws {
        let rows: [(text: [UInt8], read: String)] = [
            (Array(#"\ud83d"#.utf8), "\u{FFFD}"), (Array(#"\ude00x"#.utf8), "\u{FFFD}x"),
            (Array(#"\ud83d\ud83d\ude00"#.utf8), "\u{FFFD}😀"),
            (Array(#"\ud83d\n"#.utf8), "\u{FFFD}\n"), (Array(#"\ud83d\u0041"#.utf8), "\u{FFFD}A"),
            (Array(#"\ud83dude00"#.utf8), "\u{FFFD}ude00"),
            ([0xFF, 0x41], "\u{FFFD}A"), (Array(#"\u00e9"#.utf8) + [0xC3], "é\u{FFFD}"),
            ([0xC3, 0xA9], "é"), (Array(#"\ud83d\ude00"#.utf8), "😀"),
        ]
        for row in rows {
            let bytes =
                [0xEF, 0xBB, 0xBF] + Array(#"{"a":""#.utf8) + row.text
                + Array(#"","b":["c"]}"#.utf8)
            try bytes.withUnsafeBytes { bytes in
                let root = try JSONReader.parse(bytes, brokenText: .repaired)
                #expect(root["a"]?.string == row.read)
                #expect(root["a"]?.stringCount ?? 0 > 0)
                #expect(root["b"]?.elements.map(\.string) == ["c"])
            }
        }
        // What is no text stays what it is.
        let broken = [
            #""\ud83d"#, #""\ud83""#, #""\ud83d\u12""#, #""\x""#, "{\"a\":1,}", "\u{FEFF}",
        ]
        for text in broken {
            #expect(throws: JSONFault.self) {
                try Array(text.utf8).withUnsafeBytes {
                    _ = try JSONReader.parse($0, brokenText: .repaired)
                }
            }
        }
    }

    @Test("Every prefix of a document is refused where it ends")
    func prefixes() {
        let whole = [UInt8](#"{"a":[1.5e+3,"\u00e9\ud83d\ude00ü",true,null],"b":{}}"#.utf8)
        #expect(jsonFault(whole) == nil)
        for length in 0..<whole.count {
            let fault = jsonFault(Array(whole[..<length]))
            #expect(fault != nil)
            #expect((fault?.offset ?? .max) <= length)
        }
    }
}

/// The reader's fault, or nil.
func jsonFault(_ bytes: [UInt8], maximumDepth: Int = Limits.jsonDepth) -> JSONFault? {
    withExactCopy(of: bytes) { bytes in
        do throws(JSONFault) {
            _ = try JSONReader.parse(bytes, maximumDepth: maximumDepth)
            return nil
        } catch {
            return error
        }
    }
}
