import AgentCore
import Testing

@Suite("A JSON value is what is written, or nothing")
struct JSONValueTests {
    @Test(
        "An integer is one that is written as such and fits",
        arguments: [
            ("0", 0), ("-0", 0), ("7", 7), ("-7", -7),
            ("9223372036854775807", .max), ("-9223372036854775808", .min),
            ("9223372036854775808", nil), ("-9223372036854775809", nil),
            ("92233720368547758070", nil), ("18446744073709551616", nil),
            ("100000000000000000000000000000000000000", nil),
            ("1.0", nil), ("1e0", nil), ("1E2", nil), ("\"1\"", nil), ("true", nil),
        ] as [(String, Int64?)])
    func integers(_ text: String, _ number: Int64?) throws {
        try withValue(text) { #expect($0.int == number) }
    }

    @Test(
        "A number is the nearest finite one",
        arguments: [
            ("0", 0), ("-0.0", -0.0), ("1e2", 100), ("1E+2", 100), ("25e-1", 2.5),
            ("0.1", 0.1), ("9007199254740993", 9_007_199_254_740_992),
            ("1.7976931348623157e308", .greatestFiniteMagnitude),
            ("5e-324", .leastNonzeroMagnitude),
            ("1e-400", 0), ("1e400", nil), ("-1e400", nil), ("1e99999999999999999999", nil),
            ("\"1\"", nil), ("null", nil),
        ] as [(String, Double?)])
    func doubles(_ text: String, _ number: Double?) throws {
        try withValue(text) {
            #expect($0.double == number)
            #expect($0.double?.sign == number?.sign)
        }
        let digits = "0." + String(repeating: "3", count: 10_000)
        try withValue(digits) { #expect($0.double == 1.0 / 3) }
    }

    @Test("Of members with the same name the last counts, however it is written")
    func duplicates() throws {
        try withValue(#"{"a":1,"\u0061":2,"b":3}"#) { value in
            #expect(value["a"]?.int == 2)
            #expect(value["a" as String]?.int == 2)
            #expect(value.count == 3)
            let members = value.members.map { "\($0.key)\($0.value.int ?? 0)" }
            #expect(members == ["a1", "a2", "b3"])
        }
    }

    @Test("A name is the whole name")
    func names() throws {
        try withValue(#"{"ab":1,"a\u00e9":2,"":3,"x\ny":4}"#) { value in
            #expect(value["a"] == nil)
            #expect(value["abc"] == nil)
            #expect(value["a\u{E9}"]?.int == 2)
            // The same character to a reader, other bytes to a parser.
            #expect(value["ae\u{301}"] == nil)
            #expect(value[""]?.int == 3)
            #expect(value["x\ny"]?.int == 4)
            #expect(value["x"] == nil)
        }
    }

    @Test("A value of another kind is nothing, and not an empty something")
    func kinds() throws {
        try withValue(#"[{"a":[]},[1],"s",1,true,null]"#) { value in
            let kinds = value.elements.map(\.kind)
            #expect(kinds == [.object, .array, .string, .number, .bool, .null])
            #expect(value["a"] == nil)
            #expect(value.string == nil && value.stringCount == nil && value.int == nil)
            #expect(value.double == nil && value.bool == nil && !value.isNull)
            #expect(value.secret(in: .ordinary) == nil)
            #expect(Array(value.members).isEmpty)
            let counts = value.elements.map(\.count)
            #expect(counts == [1, 1, 0, 0, 0, 0])
            let nulls = value.elements.map(\.isNull)
            #expect(nulls == [false, false, false, false, false, true])
        }
    }

    @Test("What follows a container is found behind all that is in it")
    func siblings() throws {
        try withValue(#"{"a":{"x":[[],[{}],{"y":[1,2]}]},"b":[{},[]],"c":"end"}"#) { value in
            #expect(value["c"]?.string == "end")
            #expect(value["b"]?.count == 2)
            let inner = value["a"]?["x"]
            #expect(inner?.elements.map(\.kind) == [.array, .array, .object])
        }
    }

    @Test(
        "A string is decoded",
        arguments: [
            (#""""#, ""), (#""a""#, "a"), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
            (#""\u0000""#, "\0"),
            (
                #""\u007f\u0080\u07FF\u0800\uFFFF""#,
                "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}"
            ),
            (#""\ud83d\ude00x\uD800\uDC00\udbff\udfff""#, "\u{1F600}x\u{10000}\u{10FFFF}"),
            (#""ü\u00fc😀""#, "\u{FC}\u{FC}\u{1F600}"), (#""a\nb\nc""#, "a\nb\nc"),
        ]) func strings(_ text: String, _ decoded: String) throws
    {
        try withValue(text) { value in
            #expect(value.string.map { Array($0.utf8) } == Array(decoded.utf8))
            #expect(value.stringCount == decoded.utf8.count)
            let secret = value.secret(in: .ordinary)
            #expect(secret?.withBytes { Array($0) } == Array(decoded.utf8))
        }
        try withValue("{\(text):1}") { value in
            #expect(value[decoded]?.int == 1)
            #expect(value.members.map(\.key) == [decoded])
        }
    }

    @Test("A secret takes the memory that it needs, and no more")
    func secretMemory() throws {
        nonisolated(unsafe) var asked: [Int] = []
        let memory = SecretMemory(
            allocate: {
                asked.append($0)
                return SecretMemory.ordinary.allocate($0)
            },
            release: SecretMemory.ordinary.release)
        try withValue(#""\u0041\u0042c""#) { #expect($0.secret(in: memory)?.count == 3) }
        #expect(asked == [3])
    }

    @Test("Of a document that is cut off, what is complete is there, wherever it was cut")
    func cutOff() throws {
        let whole = #"{"a":[1,{"b":"c"},[]],"d":12,"e":"f","g":true}"#
        let parts: [(key: StaticString, end: String)] = [
            ("e", #""f""#), ("g", "true"), ("d", "12,"),
        ]
        for count in 1...whole.utf8.count {
            var text = String(whole.prefix(count))
            try text.withUTF8 { bytes in
                let value = try JSONReader.parse(UnsafeRawBufferPointer(bytes), end: .cutOff)
                #expect(value.kind == .object)
                for (key, end) in parts {
                    let isThere = String(whole.prefix(count)).contains(end)
                    #expect((value[key] != nil) == isThere, "\(key) of \(count)")
                }
                // Everything on the tape can be walked.
                for (_, member) in value.members { _ = member.elements.map { Array($0.members) } }
            }
        }
        for text in ["", " ", #"{"a":1}x"#, #"{"a" 1"#, #"{"a":1,,"#] {
            var text = text
            text.withUTF8 { bytes in
                _ = #expect(throws: JSONFault.self) {
                    try JSONReader.parse(UnsafeRawBufferPointer(bytes), end: .cutOff)
                }
            }
        }
    }

    @Test("A hundred thousand members are walked once")
    func many() throws {
        let text =
            "[" + Array(repeating: #"{"a":[0]}"#, count: 100_000).joined(separator: ",") + "]"
        try withValue(text) { value in
            #expect(value.count == 100_000)
            #expect(value.elements.reduce(0) { $0 + ($1["a"]?.count ?? 0) } == 100_000)
        }
    }

    private func withValue(_ text: String, _ body: (JSONValue) -> Void) throws {
        try withExactCopy(of: Array(text.utf8)) { body(try JSONReader.parse($0)) }
    }
}
