import AgentCore
import Testing

@Suite("Dates are read and written without a calendar library")
struct TimestampTests {
    @Test(
        "RFC 3339 is written in UTC and whole seconds",
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"), (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"), (4_107_456_000, "2100-02-28T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"), (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_776_675_600, "2026-04-20T09:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] as [(Int64, String)])
    func written(_ seconds: Int64, _ text: String) {
        #expect(Timestamp.rfc3339(WallTime(seconds: seconds)) == text)
        #expect(
            Timestamp.rfc3339(WallTime(milliseconds: seconds * 1000 + 999)) == text)
        if seconds >= 0 {
            #expect(Timestamp.wallTime(rfc3339: text) == WallTime(seconds: seconds))
        }
    }

    @Test("Every day from 1970 to 2110 is read back as itself")
    func everyDay() {
        for day in Int64(0)..<51_000 {
            let time = WallTime(seconds: day * 86_400 + 43_200)
            #expect(Timestamp.wallTime(rfc3339: Timestamp.rfc3339(time)) == time)
        }
    }

    @Test(
        "RFC 3339 is read with fractions, offsets and lower case",
        arguments: [
            ("2026-04-20T09:00:00.999999Z", 1_776_675_600),
            ("2026-04-20t09:00:00z", 1_776_675_600),
            ("2026-04-20T11:30:00+02:30", 1_776_675_600),
            ("2026-04-20T00:00:00-09:00", 1_776_675_600),
            ("2016-12-31T23:59:60Z", 1_483_228_800),
        ] as [(String, Int64)])
    func read(_ text: String, _ seconds: Int64) {
        #expect(Timestamp.wallTime(rfc3339: text) == WallTime(seconds: seconds))
    }

    @Test(
        "Nonsense is no date",
        arguments: [
            "", "Z", "2026", "2026-04-20", "2026-04-20T09:00:00", "2026-04-20 09:00:00Z",
            "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-32T00:00:00Z",
            "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00ZZ",
            "2026-01-01T00:00:00+2:00", "2026-01-01T00:00:00+24:00", "1969-12-31T23:59:59Z",
            "+026-01-01T00:00:00Z", "2026-01-01T00:00:00\u{0}Z", "２026-01-01T00:00:00Z",
        ])
    func nonsense(_ text: String) {
        #expect(Timestamp.wallTime(rfc3339: text) == nil)
    }

    @Test(
        "The three HTTP dates are one",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Monday, 20-Apr-26 09:00:00 GMT", 1_776_675_600),
            ("Mon, 20 Apr 2026 09:00:00 GMT", 1_776_675_600),
            ("Mon Apr 20 09:00:00 2026", 1_776_675_600),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
        ] as [(String, Int64)])
    func http(_ text: String, _ seconds: Int64) {
        #expect(Timestamp.http(text) == WallTime(seconds: seconds))
    }

    @Test(
        "A Date header is the first of the three forms",
        arguments: [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_709_164_799, "Wed, 28 Feb 2024 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
        ] as [(Int64, String)])
    func httpDate(_ seconds: Int64, _ text: String) {
        var bytes: [UInt8] = []
        Timestamp.appendHTTP(WallTime(milliseconds: seconds * 1000 + 999), to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        #expect(Timestamp.http(text) == WallTime(seconds: seconds))
    }

    @Test(
        "What is none of them is no date",
        arguments: [
            "", "0", "soon", "GMT", ", , , , , GMT", "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT GMT", "Sunday, 06-Nov-194 08:49:37 GMT",
            "Sunday, 06-Nov 08:49:37 GMT", "2026-04-20T09:00:00Z",
        ])
    func noHTTPDate(_ text: String) {
        #expect(Timestamp.http(text) == nil)
    }
}
