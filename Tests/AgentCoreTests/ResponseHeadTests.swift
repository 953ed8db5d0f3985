import AgentCore
import Testing

@Suite("The head of an answer is read whole or not at all")
struct ResponseHeadTests {
    private func parse(_ text: String) throws -> ResponseHead? {
        try Array(text.utf8).withUnsafeBytes { try ResponseHead.parse($0) }
    }

    private let answer =
        "HTTP/1.1 200 OK\r\nContent-Type: Text/Plain; charset=utf-8\r\n"
        + "content-length:  12 \r\n\r\n"

    @Test("Status, length and type are found whatever the case and the spaces")
    func fields() throws {
        let bytes = Array((answer + "body").utf8)
        let head = try #require(try bytes.withUnsafeBytes { try ResponseHead.parse($0) })
        #expect(head.status == 200)
        #expect(head.contentLength == 12)
        #expect(String(decoding: bytes[head.mediaType], as: UTF8.self) == "Text/Plain")
        bytes.withUnsafeBytes { bytes in
            #expect(head.hasMediaType("text/plain", in: bytes))
            #expect(!head.hasMediaType("text/plai", in: bytes))
            #expect(!head.hasMediaType("text/html", in: bytes))
        }
        #expect(head.byteCount == answer.utf8.count)
    }

    @Test("Every beginning of an answer is incomplete, never wrong")
    func beginnings() throws {
        for count in 0..<answer.utf8.count {
            #expect(try parse(String(decoding: answer.utf8.prefix(count), as: UTF8.self)) == nil)
        }
    }

    @Test(
        "What cannot become an answer is refused at once",
        arguments: [
            "220", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1234567890123456789\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 " + String(repeating: "2", count: Limits.responseHeadBytes),
        ])
    func refused(text: String) {
        #expect(throws: ResponseHead.Malformed.self) { try parse(text) }
    }
}

@Suite("Dates in RFC 3339 are read as they are written")
struct TimestampReadingTests {
    @Test("Reading undoes writing, leap days and ends of years included")
    func roundTrip() {
        for seconds in stride(from: Int64(0), to: 253_402_300_799, by: 86_399 * 137) {
            let time = WallTime(seconds: seconds)
            #expect(Timestamp.wallTime(rfc3339: Timestamp.rfc3339(time)) == time)
        }
    }

    @Test("Fractions and offsets are understood")
    func forms() {
        let time = Timestamp.wallTime(rfc3339: "2026-04-20T09:05:07Z")
        #expect(Timestamp.wallTime(rfc3339: "2026-04-20T11:05:07.123+02:00") == time)
        #expect(Timestamp.wallTime(rfc3339: "2026-04-20t03:35:07-05:30") == time)
    }

    @Test(
        "Anything else is no time",
        arguments: [
            "", "2026-04-20", "2026-04-20T09:05:07", "2026-13-20T09:05:07Z",
            "2026-04-20T24:05:07Z", "2026-04-20T09:05:07.Z", "2026-04-20T09:05:07Zx",
            "+026-04-20T09:05:07Z",
        ])
    func refused(text: String) {
        #expect(Timestamp.wallTime(rfc3339: text) == nil)
    }
}
