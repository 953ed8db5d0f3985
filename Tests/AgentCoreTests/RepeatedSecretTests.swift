import Foundation
import Testing

@testable import AgentCore

@Suite("A server that repeats what it got")
struct RepeatedSecretTests {
    private static let token = "crt_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

    private func secret(_ text: String) -> Secret {
        var text = text
        return text.withUTF8 { Secret(copying: UnsafeRawBufferPointer($0), in: .ordinary) }
    }

    /// What a refusal's words come to, after `message` in answer to a request with these secrets.
    private func words(_ message: String, sent secrets: [String]) throws -> String {
        let body = try JSONSerialization.data(withJSONObject: [
            "error": ["statusCode": 400, "message": message]
        ])
        let answer = CanopyAnswer(
            status: 400, retryAfter: nil, date: nil,
            body: secret(String(decoding: body, as: UTF8.self)), secrets: secrets.map(secret))
        let meaning = RefreshMeaning(
            .answered(answer), sent: Example.stamp(), now: Example.moment(1), memory: .ordinary)
        guard case .refused(let words) = meaning else {
            Issue.record("not a refusal")
            return ""
        }
        return words
    }

    @Test("H04: no 12-byte piece of a token in a server's words gets on, wherever it stands")
    func pieces() throws {
        let token = Array(Self.token)
        for start in 0...(token.count - 12) {
            let piece = String(token[start..<(start + 12)])
            let words = try words("Cannot process '\(piece)', sorry", sent: [Self.token])
            #expect(!words.contains(piece), "the piece at \(start)")
        }
    }

    @Test("H04: nor does a token in base64 or percent-encoded, nor one that we did not send")
    func encoded() throws {
        let percent = Self.token.utf8.map { String(format: "%%%02X", $0) }.joined()
        let base64 = Data(Self.token.utf8).base64EncodedString()
        let foreign = "crt_" + String(repeating: "Zz9", count: 16)
        for text in [percent, base64, foreign] {
            let words = try words("Cannot process {\"token\":\"\(text)\"}", sent: [Self.token])
            #expect(!words.contains(text.prefix(12)))
        }
    }

    @Test("H04: nor does a token in JSON's escapes, or number by number")
    func numbered() throws {
        let bytes = Array(Self.token.utf8)
        let spellings = [
            bytes.map { String(format: #"\u%04x"#, $0) }.joined(),
            bytes.map { "\($0)" }.joined(separator: ", "),
            "[" + bytes.map { "\($0)" }.joined(separator: ",") + "]",
            bytes.map { String(format: "%02X", $0) }.joined(separator: ":"),
            bytes.map { String(format: "0x%02x", $0) }.joined(separator: " "),
        ]
        for text in spellings {
            for message in [text, "Cannot process \(text), sorry", "a 1 \(text)"] {
                let words = try words(message, sent: [Self.token])
                #expect(!words.contains(text.dropFirst(10).prefix(24)), "\(words)")
            }
        }
        // What people write goes on as it is.
        for message in [
            "Try again in 12 s, at 10:15:00 on 2026-04-20", "a bad id: 7, be 2 ft or add 99",
            "[1, 2, 3] are not allowed; see §4.2.1",
        ] {
            #expect(try words(message, sent: [Self.token]).contains(message))
        }
    }

    @Test(
        "H04: nor does a password or a code, however short",
        arguments: ["correct horse battery staple", "hunter2", "135790", "pa\"ss\\wörd"])
    func short(_ password: String) throws {
        let words = try words("Cannot process \(password)!", sent: ["x1y2z3", password])
        #expect(!words.contains(password))
        #expect(words.contains("400"))
    }

    @Test("Words that repeat nothing get on as they are, with a session's id in them")
    func harmless() throws {
        let text = "Session 5f1c9a52-0000-4000-8000-000000000001 of ada@example.com is over"
        #expect(try words(text, sent: [Self.token]) == text + " (400)")
    }

    @Test("Of a secret, eight bytes in a row are known again, and seven are chance")
    func length() {
        let token = secret(Self.token)
        #expect(token.isRepeated(in: "…89abcdef…"))
        #expect(!token.isRepeated(in: "…9abcdef…"))
        #expect(!token.isRepeated(in: ""))
        #expect(!secret("").isRepeated(in: "words"))
    }
}
