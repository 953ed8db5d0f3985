import AgentCore
import Testing

@Suite("A target is decoded once, strictly")
struct RequestTargetTests {
    @Test(
        "A path has the segments that its slashes make",
        arguments: [
            ("", [""]), ("/", [""]), ("/v1/token", ["v1", "token"]),
            ("/v1/token/", ["v1", "token", ""]), ("//", ["", ""]),
            ("/a%2Fb/%C3%BC", ["a/b", "\u{FC}"]), ("*", ["*"]), ("/..", [".."]),
        ]) func segments(_ path: String, _ expected: [String]) throws
    {
        try withTarget(path, nil) { target in
            let segments = try target.segments.map { try $0.decoded() }
            #expect(segments == expected)
        }
    }

    @Test(
        "A query has the pairs that its ampersands make",
        arguments: [
            ("", []), ("&&", []), ("a", ["a", nil]), ("a=", ["a", ""]), ("=b", ["", "b"]),
            ("a=1&b&&c=%20+=", ["a", "1", "b", nil, "c", " +="]),
        ] as [(String, [String?])])
    func items(_ query: String, _ expected: [String?]) throws {
        try withTarget("/", query) { target in
            let items = try target.items.flatMap { name, value in
                [try name.decoded(), try value?.decoded()]
            }
            #expect(items == expected)
        }
    }

    @Test("Without a query there are no items")
    func noQuery() {
        withTarget("/", nil) { #expect(Array($0.items).isEmpty) }
    }

    @Test(
        "Bad escapes are refused",
        arguments: [
            ("%", .badEscape), ("%4", .badEscape), ("a%4", .badEscape), ("%zz", .badEscape),
            ("%4g", .badEscape), ("%+1", .badEscape), ("%%20", .badEscape), ("a%00", .nul),
            ("%FF", .notUTF8), ("%ED%A0%80", .notUTF8), ("%C3", .notUTF8),
        ] as [(String, EncodedText.Malformed)])
    func refused(_ text: String, _ fault: EncodedText.Malformed) {
        withEncoded(text) { encoded in
            #expect(throws: fault) { try encoded.decoded() }
        }
    }

    @Test("Comparing compares what is meant, not how it is written")
    func equal() {
        withEncoded("%74oken") {
            #expect($0 == "token")
            #expect(!($0 == "%74oken"))
            #expect(!($0 == "toke"))
            #expect(!($0 == "tokens"))
        }
        withEncoded("toke%6") { #expect(!($0 == "token")) }
        withEncoded("") { #expect($0 == "") }
    }

    @Test(
        "A whole number is digits alone",
        arguments: [
            ("0", 0), ("60", 60), ("007", 7), ("999999999999999999", 999_999_999_999_999_999),
            ("1000000000000000000", nil), ("", nil), ("-1", nil), ("+1", nil), ("1.5", nil),
            ("0x1", nil), ("1 ", nil), ("%31", nil),
        ] as [(String, Int64?)])
    func numbers(_ text: String, _ number: Int64?) {
        withEncoded(text) { #expect($0.wholeNumber == number) }
    }

    @Test("No bytes crash it", arguments: 1...4)
    func walk(_ seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<3000 {
            withExactCopy(of: chance.mutated(Array("/v1/%41%2f%c3%bc/x?a=%31&b".utf8))) { bytes in
                let target = RequestTarget(path: bytes, query: bytes)
                for text in target.segments.map({ $0 }) + target.items.map(\.name) {
                    do throws(EncodedText.Malformed) {
                        // Decoding never lengthens.
                        #expect(try text.decoded().utf8.count <= bytes.count)
                    } catch {
                        #expect(!(text == "v1"))
                    }
                }
            }
        }
    }

    private func withTarget(
        _ path: String, _ query: String?, _ body: (RequestTarget) throws -> Void
    ) rethrows {
        try withExactCopy(of: Array(path.utf8)) { path in
            guard let query else { return try body(RequestTarget(path: path, query: nil)) }
            try withExactCopy(of: Array(query.utf8)) { query in
                try body(RequestTarget(path: path, query: query))
            }
        }
    }

    private func withEncoded(_ text: String, _ body: (EncodedText) -> Void) {
        withExactCopy(of: Array(text.utf8)) { body(EncodedText($0)) }
    }
}
