import AgentCore
import Testing

@Suite("What is written is JSON, whatever goes in")
struct JSONWriterTests {
    @Test("Commas and colons stand where they belong")
    func structure() {
        let text = written { writer in
            writer.beginObject()
            writer.member("text", "a" as String)
            writer.member("fixed", "b")
            writer.member("number", -5)
            writer.member("flag", true)
            writer.member("absent", ifPresent: nil as String?)
            writer.member("absent", ifPresent: nil as Int64?)
            writer.member("absent", ifPresent: nil as Bool?)
            writer.member("absent", ifPresent: nil as Secret?)
            writer.member("present", ifPresent: "c" as String?)
            writer.member("present", ifPresent: 6 as Int64?)
            writer.member("present", ifPresent: false as Bool?)
            writer.key("list")
            writer.beginArray()
            writer.null()
            writer.beginArray()
            writer.endArray()
            writer.beginObject()
            writer.endObject()
            writer.string("d" as String)
            writer.number(2.5)
            Array("[1,2]".utf8).withUnsafeBytes { writer.raw($0) }
            writer.bool(false)
            writer.endArray()
            writer.key("k" as String)
            writer.number(0 as Int64)
            writer.endObject()
        }
        #expect(
            text == #"{"text":"a","fixed":"b","number":-5,"flag":true,"present":"c","present":6,"#
                + #""present":false,"list":[null,[],{},"d",2.5,[1,2],false],"k":0}"#)
    }

    @Test(
        "Integers are written to their ends",
        arguments: [0, 1, -1, 9, 10, 99, 100, -100, .max, .min] as [Int64])
    func integers(_ number: Int64) {
        #expect(written { $0.number(number) } == "\(number)")
    }

    @Test(
        "Numbers read back as the same",
        arguments: [
            0, -0.0, 1, 0.1, 1e21, 1e-7, 123_456_789.125, .pi, .greatestFiniteMagnitude,
            .leastNonzeroMagnitude, -1e300,
        ]) func doubles(_ number: Double) throws
    {
        let text = written { $0.number(number) }
        try withExactCopy(of: Array(text.utf8)) { bytes in
            let value = try JSONReader.parse(bytes)
            #expect(value.double?.bitPattern == number.bitPattern)
        }
    }

    @Test(
        "What has to be escaped is, and nothing else",
        arguments: [
            ("", #""""#), ("plain", #""plain""#), ("\"", #""\"""#), ("a\\b", #""a\\b""#),
            ("/", #""/""#), ("\u{8}\t\n\u{C}\r", #""\b\t\n\f\r""#),
            ("\0\u{1}\u{1F}", #""\u0000\u0001\u001f""#), ("\u{7F}x", #""\u007fx""#),
            ("\u{80}\u{9F}\u{A0}", "\"\\u0080\\u009f\u{A0}\""),
            ("\u{FC}\u{20AC}\u{1F600}", "\"\u{FC}\u{20AC}\u{1F600}\""),
            ("\u{2028}", "\"\u{2028}\""), ("a\nb\nc", #""a\nb\nc""#),
        ]) func escapes(_ text: String, _ quoted: String)
    {
        #expect(written { $0.string(text) } == quoted)
        let secret = secret(Array(text.utf8))
        #expect(written { $0.secret(secret) } == quoted)
        #expect(
            written {
                $0.beginObject()
                $0.key(text)
                $0.null()
                $0.endObject()
            } == "{\(quoted):null}")
    }

    @Test(
        "Bytes of a secret that are not UTF-8 are replaced one by one",
        arguments: [
            ([0xFF], "\"\u{FFFD}\""), ([0x61, 0xC3], "\"a\u{FFFD}\""),
            ([0xC3, 0x22], "\"\u{FFFD}\\\"\""), ([0xE2, 0x82, 0x61], "\"\u{FFFD}\u{FFFD}a\""),
            ([0xED, 0xA0, 0x80], "\"\u{FFFD}\u{FFFD}\u{FFFD}\""),
            ([0xC0, 0xAF], "\"\u{FFFD}\u{FFFD}\""),
            (
                [0xF4, 0x90, 0x80, 0x80, 0x0A],
                "\"\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\\n\""
            ),
        ] as [([UInt8], String)])
    func notUTF8(_ bytes: [UInt8], _ quoted: String) {
        let secret = secret(bytes)
        #expect(written { $0.secret(secret) } == quoted)
    }

    @Test("Any bytes of a secret give JSON, and text comes back as it was", arguments: 1...4)
    func walk(_ seed: UInt64) throws {
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...40, using: &chance)).map { _ in
                // Ends of the classes of bytes, and anything.
                [0x00, 0x1F, 0x20, 0x22, 0x5C, 0x7F, 0x80, 0xBF, 0xC2, 0xE0, 0xED, 0xF0, 0xF4]
                    .randomElement(using: &chance).flatMap {
                        Bool.random(using: &chance) ? $0 : nil
                    } ?? UInt8.random(in: .min ... .max, using: &chance)
            }
            let secret = secret(bytes)
            let text = written { $0.secret(secret) }
            try withExactCopy(of: Array(text.utf8)) { document in
                let value = try JSONReader.parse(document)
                if let valid = String(validating: bytes, as: UTF8.self) {
                    #expect(value.string == valid)
                    #expect(value.secret(in: .ordinary) == secret)
                } else {
                    #expect(value.string?.contains("\u{FFFD}") == true)
                }
            }
        }
    }

    @Test("A document with a secret is itself one, and the secret comes out of it unchanged")
    func secretDocument() throws {
        let token = secret(Array("to\"ken\\\n\u{1F600}".utf8))
        var writer = JSONWriter(into: SecretBuffer(in: .ordinary))
        writer.beginObject()
        writer.member("token", token)
        writer.member("again", ifPresent: token)
        writer.endObject()
        try writer.finish().withBytes { bytes in
            let value = try JSONReader.parse(bytes)
            #expect(value["token"]?.secret(in: .ordinary) == token)
            #expect(value["again"]?.secret(in: .ordinary) == token)
        }
    }

    private func secret(_ bytes: [UInt8]) -> Secret {
        bytes.withUnsafeBytes { Secret(copying: $0, in: .ordinary) }
    }

    private func written(_ body: (inout JSONWriter<[UInt8]>) -> Void) -> String {
        var writer = JSONWriter(into: [UInt8]())
        body(&writer)
        return String(decoding: writer.finish(), as: UTF8.self)
    }
}
