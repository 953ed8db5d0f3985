import AgentCore
import Testing

@Suite("A request's head is read in one way or not at all")
struct RequestHeadTests {
    private static let full = """
        POST /v1/profiles/work/refresh?timeout=5&if_generation=7 HTTP/1.1\r
        Host: canopyd\r
        User-Agent: curl/7.88.1\r
        Accept: application/json;q=0.5, text/plain\r
        Content-Length: 12\r
        Expect: 100-continue\r
        Connection: keep-alive, Upgrade\r
        \r\n
        """

    @Test("All parts of a request are found")
    func parts() throws {
        let bytes = [UInt8](Self.full.utf8)
        let (head, length) = try #require(parsed(bytes + [1, 2, 3]))
        #expect(length == bytes.count)
        #expect(head.method == .post)
        #expect(head.version == .http11)
        #expect(text(head.path, bytes) == "/v1/profiles/work/refresh")
        #expect(head.query.map { text($0, bytes) } == "timeout=5&if_generation=7")
        #expect(head.contentLength == 12)
        #expect(head.keepAlive)
        #expect(head.expectsContinue)
        #expect(head.accept == .text)
        #expect(!head.fromBrowser)
    }

    @Test("Wherever the bytes stop, the head is incomplete, and then it is the same")
    func splits() throws {
        for prefix in ["", "\r\n", "\r\n\r\n\r\n\r\n"] {
            let bytes = [UInt8]((prefix + Self.full).utf8)
            let whole = withExactCopy(of: bytes) { RequestHead.parse($0) }
            var searched = 0
            for count in 0..<bytes.count {
                withExactCopy(of: Array(bytes[..<count])) { part in
                    #expect(RequestHead.parse(part) == .incomplete)
                    #expect(RequestHead.parse(part, from: searched) == .incomplete)
                }
                withExactCopy(of: bytes) {
                    #expect(RequestHead.parse($0, from: count) == whole)
                }
                searched = count
            }
            guard case .head(_, bytes.count) = whole else {
                Issue.record("not a head: \(whole)")
                continue
            }
        }
    }

    @Test(
        "Good heads are read, with what they mean",
        arguments: [
            Good("GET / HTTP/1.1"),
            Good("GET / HTTP/1.0") { $0.keepAlive = false },
            Good("GET / HTTP/1.0", "Connection: Keep-Alive") { $0.keepAlive = false },
            Good("GET / HTTP/1.7"),
            Good("GET / HTTP/1.1", "Connection: close") { $0.keepAlive = false },
            Good("GET / HTTP/1.1", "Connection: keep-alive", "connection: TE ,\tCLOSE") {
                $0.keepAlive = false
            },
            Good("GET / HTTP/1.1", "Connection: closed"),
            Good("HEAD / HTTP/1.1") { $0.method = .head },
            Good("POST / HTTP/1.1") { $0.method = .post },
            Good("PUT / HTTP/1.1") { $0.method = .put },
            Good("PATCH / HTTP/1.1") { $0.method = .patch },
            Good("DELETE / HTTP/1.1") { $0.method = .delete },
            Good("OPTIONS * HTTP/1.1") {
                $0.method = .options
                $0.path = "*"
            },
            Good("get / HTTP/1.1") { $0.method = .other },
            Good("M-SEARCH / HTTP/1.1") { $0.method = .other },
            Good("GET /a?b?c=/d HTTP/1.1") {
                $0.path = "/a"
                $0.query = "b?c=/d"
            },
            Good("GET /? HTTP/1.1") { $0.query = "" },
            Good("GET //a%20b HTTP/1.1") { $0.path = "//a%20b" },
            Good("GET http://canopyd/v1 HTTP/1.1") { $0.path = "/v1" },
            Good("GET HTTP://LocalHost:80?a HTTP/1.1") {
                $0.path = ""
                $0.query = "a"
            },
            Good("GET http://example.org/ HTTP/1.1", "Host: canopyd") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "Host: canopyd"),
            Good("GET / HTTP/1.1", "Host:"),
            Good("GET / HTTP/1.1", "host:\t CANOPYD:8080 \t"),
            Good("GET / HTTP/1.1", "Host: localhost:"),
            Good("GET / HTTP/1.1", "Host: localhost:0065535"),
            Good("GET / HTTP/1.1", "Host: localhost.evil.example") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "Host: 127.0.0.1") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "Host: [::1]:80") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "Host: canopyd:80:80") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "Origin: null") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "Origin:") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "referer: http://localhost/") { $0.fromBrowser = true },
            Good("GET / HTTP/1.1", "X-Origin: a", "Refererer: b"),
            Good("POST / HTTP/1.1", "Content-Length: 0") { $0.method = .post },
            Good("GET / HTTP/1.1", "content-length:  65536  ") { $0.contentLength = 65536 },
            Good("GET / HTTP/1.1", "Content-Length: 000000000000000005") {
                $0.contentLength = 5
            },
            Good("GET / HTTP/1.1", "Content-Length: 1", "Expect: 100-Continue") {
                $0.contentLength = 1
                $0.expectsContinue = true
            },
            // Nothing is held back, so nothing is waited for.
            Good("GET / HTTP/1.1", "Expect: 100-continue"),
            Good("GET / HTTP/1.0", "Content-Length: 1", "Expect: 100-continue") {
                $0.keepAlive = false
                $0.contentLength = 1
            },
            Good("GET / HTTP/1.1", "X: \u{FC} \t y", "Y:"),
        ]) func good(_ sample: Good) throws
    {
        let bytes = [UInt8](sample.head.utf8)
        let (head, length) = try #require(parsed(bytes))
        #expect(length == bytes.count)
        #expect(head.method == sample.method)
        #expect(text(head.path, bytes) == sample.path)
        #expect(head.query.map { text($0, bytes) } == sample.query)
        #expect(head.contentLength == sample.contentLength)
        #expect(head.keepAlive == sample.keepAlive)
        #expect(head.expectsContinue == sample.expectsContinue)
        #expect(head.fromBrowser == sample.fromBrowser)
    }

    @Test(
        "What could be read in two ways, or smuggled, is refused by name",
        arguments: [
            (
                "two lengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                .malformed(.repeatedContentLength)
            ),
            (
                "two equal lengths",
                "POST / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
                .malformed(.repeatedContentLength)
            ),
            (
                "a list of lengths", "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
                .malformed(.contentLength)
            ),
            (
                "CL.TE",
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                .malformed(.transferEncoding)
            ),
            (
                "TE.CL",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
                .malformed(.transferEncoding)
            ),
            (
                "TE identity", "POST / HTTP/1.1\r\ntransfer-encoding:identity\r\n\r\n",
                .malformed(.transferEncoding)
            ),
            (
                "TE.TE", "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
                .malformed(.transferEncoding)
            ),
            (
                "TE before a space", "POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
                .malformed(.spaceBeforeColon)
            ),
            (
                "TE folded", "POST / HTTP/1.1\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n",
                .malformed(.foldedLine)
            ),
            (
                "TE behind a vertical tab",
                "POST / HTTP/1.1\r\n\u{B}Transfer-Encoding: chunked\r\n\r\n",
                .malformed(.controlByte)
            ),
            (
                "TE behind a bare CR",
                "POST / HTTP/1.1\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n",
                .malformed(.bareCarriageReturn)
            ),
            (
                "TE behind a bare LF",
                "POST / HTTP/1.1\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n",
                .malformed(.bareLineFeed)
            ),
            ("TE behind a NUL", "POST / HTTP/1.1\r\nX: a\0\r\n\r\n", .malformed(.controlByte)),
            (
                "a fold before the first field", "GET / HTTP/1.1\r\n Host: canopyd\r\n\r\n",
                .malformed(.foldedLine)
            ),
            ("a tab fold", "GET / HTTP/1.1\r\nX: a\r\n\tb\r\n\r\n", .malformed(.foldedLine)),
            ("a head that ends in bare LF", "GET / HTTP/1.1\n\n", .malformed(.bareLineFeed)),
            ("an end of CR LF LF", "GET / HTTP/1.1\r\n\n", .malformed(.bareLineFeed)),
            (
                "a negative length", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                .malformed(.contentLength)
            ),
            (
                "a length with a plus", "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
                .malformed(.contentLength)
            ),
            (
                "a length in hexadecimal", "POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n",
                .malformed(.contentLength)
            ),
            (
                "no length", "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
                .malformed(.contentLength)
            ),
            (
                "a length that overflows",
                "POST / HTTP/1.1\r\nContent-Length: 18446744073709551617\r\n\r\n",
                .malformed(.contentLength)
            ),
            (
                "a length beyond the limit", "POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n",
                .bodyTooLarge(65537)
            ),
            (
                "two hosts", "GET / HTTP/1.1\r\nHost: canopyd\r\nHost: canopyd\r\n\r\n",
                .malformed(.repeatedHost)
            ),
            (
                "a space before the colon", "GET / HTTP/1.1\r\nHost : canopyd\r\n\r\n",
                .malformed(.spaceBeforeColon)
            ),
            (
                "a port that is none", "GET / HTTP/1.1\r\nHost: canopyd:99999999\r\n\r\n",
                .malformed(.port)
            ),
            (
                "a port just above", "GET / HTTP/1.1\r\nHost: example.org:65536\r\n\r\n",
                .malformed(.port)
            ),
            (
                "a port that is none in the target", "GET http://canopyd:65536/ HTTP/1.1\r\n\r\n",
                .malformed(.port)
            ),
            ("no colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", .malformed(.fieldName)),
            ("no field name", "GET / HTTP/1.1\r\n: canopyd\r\n\r\n", .malformed(.fieldName)),
            (
                "a field name that is none", "GET / HTTP/1.1\r\nHo(st: canopyd\r\n\r\n",
                .malformed(.fieldName)
            ),
            (
                "a field name beyond ASCII", "GET / HTTP/1.1\r\nH\u{F6}st: canopyd\r\n\r\n",
                .malformed(.fieldName)
            ),
            ("no method", " / HTTP/1.1\r\n\r\n", .malformed(.method)),
            ("a tab for a method", "\t / HTTP/1.1\r\n\r\n", .malformed(.method)),
            ("a method that is none", "G@T / HTTP/1.1\r\n\r\n", .malformed(.method)),
            ("a method alone", "GET\r\n\r\n", .malformed(.method)),
            ("two spaces", "GET  / HTTP/1.1\r\n\r\n", .malformed(.requestLine)),
            ("a space in the target", "GET /a b HTTP/1.1\r\n\r\n", .malformed(.requestLine)),
            ("a space at the end", "GET / HTTP/1.1 \r\n\r\n", .malformed(.requestLine)),
            ("a tab between", "GET\t/ HTTP/1.1\r\n\r\n", .malformed(.method)),
            ("HTTP/0.9", "GET /\r\n\r\n", .malformed(.requestLine)),
            ("lowercase http", "GET / http/1.1\r\n\r\n", .malformed(.requestLine)),
            ("a long version", "GET / HTTP/1.10\r\n\r\n", .malformed(.requestLine)),
            ("HTTP/2", "PRI * HTTP/2.0\r\n\r\n", .unsupportedVersion),
            ("HTTP/0.9 by name", "GET / HTTP/0.9\r\n\r\n", .unsupportedVersion),
            ("a relative target", "GET v1/token HTTP/1.1\r\n\r\n", .malformed(.target)),
            ("an asterisk for GET", "GET * HTTP/1.1\r\n\r\n", .malformed(.target)),
            (
                "an authority for a target", "CONNECT canopyd:80 HTTP/1.1\r\n\r\n",
                .malformed(.target)
            ),
            ("https", "GET https://canopyd/ HTTP/1.1\r\n\r\n", .malformed(.target)),
            ("no authority", "GET http:///v1 HTTP/1.1\r\n\r\n", .malformed(.target)),
            (
                "user information", "GET http://canopyd@evil/ HTTP/1.1\r\n\r\n",
                .malformed(.target)
            ),
            ("a fragment", "GET /a#b HTTP/1.1\r\n\r\n", .malformed(.target)),
            ("raw UTF-8 in the target", "GET /\u{FC} HTTP/1.1\r\n\r\n", .malformed(.target)),
            ("DEL in the target", "GET /\u{7F} HTTP/1.1\r\n\r\n", .malformed(.controlByte)),
            (
                "another expectation", "GET / HTTP/1.1\r\nExpect: tea\r\n\r\n",
                .unsupportedExpectation
            ),
            (
                "five empty lines", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                .malformed(.emptyLines)
            ),
            ("a TLS greeting", "\u{16}\u{3}\u{1}", .malformed(.controlByte)),
        ] as [(String, String, RequestFault)])
    func refused(_ name: String, _ head: String, _ fault: RequestFault) {
        // What is pipelined behind must not change the judgement.
        for rest in ["", "GET /smuggled HTTP/1.1\r\n\r\n"] {
            withExactCopy(of: [UInt8]((head + rest).utf8)) {
                #expect(RequestHead.parse($0) == .fault(fault))
            }
        }
    }

    @Test("A fault that shows at once is told before the head is over")
    func early() {
        for head in ["GET / HTTP/1.1\n", "GET\0", "GET / HTTP/1.1\r\nHost: a\rb"] {
            withExactCopy(of: [UInt8](head.utf8)) {
                guard case .fault = RequestHead.parse($0) else {
                    Issue.record("waits for more after \(head)")
                    return
                }
            }
        }
    }

    @Test("A head of exactly the limit is served, and one byte more is not")
    func headLimit() {
        func head(_ count: Int) -> [UInt8] {
            let frame = "GET / HTTP/1.1\r\nX: \r\n\r\n"
            let filling = String(repeating: "x", count: count - frame.utf8.count)
            return [UInt8]("GET / HTTP/1.1\r\nX: \(filling)\r\n\r\n".utf8)
        }
        #expect(parsed(head(Limits.requestHeadBytes))?.length == Limits.requestHeadBytes)
        withExactCopy(of: head(Limits.requestHeadBytes + 1)) {
            #expect(RequestHead.parse($0) == .fault(.headTooLarge))
        }
        let endless = [UInt8](repeating: UInt8(ascii: "a"), count: Limits.requestHeadBytes)
        withExactCopy(of: endless) {
            #expect(RequestHead.parse($0) == .fault(.headTooLarge))
            #expect(RequestHead.parse($0, from: 100) == .fault(.headTooLarge))
            #expect(
                RequestHead.parse(UnsafeRawBufferPointer(rebasing: $0.dropLast()))
                    == .incomplete)
        }
    }

    @Test("A hundred header lines are served, and one more is not")
    func fieldLimit() {
        func head(_ count: Int) -> [UInt8] {
            let lines = String(repeating: "A: b\r\n", count: count)
            return [UInt8]("GET / HTTP/1.1\r\n\(lines)\r\n".utf8)
        }
        #expect(parsed(head(Limits.requestFields)) != nil)
        withExactCopy(of: head(Limits.requestFields + 1)) {
            #expect(RequestHead.parse($0) == .fault(.tooManyFields))
        }
    }

    @Test(
        "Accept picks what the client would rather have",
        arguments: [
            ([], .json),
            ([""], .json),
            (["*/*"], .json),
            (["text/plain"], .text),
            (["TEXT/Plain; charset=utf-8"], .text),
            (["text/*"], .text),
            (["application/*"], .json),
            (["application/json, text/plain, */*"], .json),
            (["text/plain, application/json"], .json),
            (["text/plain, */*"], .text),
            (["text/plain;q=0.9, application/json"], .json),
            (["text/plain;q=0.9, application/json;q=0.8"], .text),
            (["text/plain; Q=0.001"], .text),
            (["text/plain;q=0"], .nothing),
            (["text/plain;q=0, */*"], .json),
            (["application/json;q=0, */*;q=0.1"], .text),
            (["text/event-stream"], .eventStream),
            (["text/event-stream, */*;q=0.1"], .eventStream),
            (
                [
                    "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
                ],
                .openMetrics
            ),
            (["text/html,application/xhtml+xml,*/*;q=0.8"], .json),
            (["text/html"], .nothing),
            (["text/html", "text/plain"], .text),
            (["nonsense"], .json),
            (["/, a/, /b, ;q=1, text/plain;q=2"], .json),
            (["text/plain;q=0.0001, text/event-stream"], .eventStream),
            (["text/html;x=\"a,text/plain\""], .nothing),
            (["text/html;x=\"\\\",text/plain"], .nothing),
        ] as [([String], RequestHead.Preference)])
    func accept(_ values: [String], _ preference: RequestHead.Preference) throws {
        let lines = values.map { "Accept: \($0)\r\n" }.joined()
        let (head, _) = try #require(parsed([UInt8]("GET / HTTP/1.1\r\n\(lines)\r\n".utf8)))
        #expect(head.accept == preference)
    }

    @Test("No bytes crash the parser, and no head reaches beyond them", arguments: 1...8)
    func walk(_ seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var heads = 0
        for _ in 0..<4000 {
            let bytes = chance.mutated([UInt8](Self.full.utf8))
            withExactCopy(of: bytes) { bytes in
                let progress = RequestHead.parse(bytes)
                switch progress {
                case .incomplete: break
                case .fault(let fault): #expect((400...431).contains(Problem(fault).code.status))
                case .head(let head, let length):
                    heads += 1
                    #expect((18...bytes.count).contains(length))
                    #expect(head.path.upperBound < length)
                    #expect((head.query?.upperBound ?? 0) < length)
                    // A hint that is wrong may cost a fault, and never a crash.
                    let hint = Int.random(in: 0...bytes.count + 2, using: &chance)
                    let again = RequestHead.parse(bytes, from: hint)
                    #expect(again != .incomplete || hint >= length)
                }
            }
        }
        // Else the walk has left the ground that it is to cover.
        #expect(heads > 100)
    }

    @Test("Every fault says a sentence, with its limit")
    func sentences() {
        let faults =
            RequestFault.Rule.allCases.map(RequestFault.malformed)
            + [
                .bodyTooLarge(70000), .headTooLarge, .tooManyFields, .unsupportedVersion,
                .unsupportedExpectation,
            ]
        for fault in faults { #expect(fault.detail.hasSuffix(".")) }
        #expect(Set(faults.map(\.detail)).count == faults.count)
        #expect(RequestFault.bodyTooLarge(70000).detail.contains("65536"))
        #expect(
            faults.map { Problem($0).code.status }.suffix(5) == [413, 431, 431, 400, 400])
    }

    /// A request line, header lines, and what is expected of them beyond the defaults.
    struct Good: CustomTestStringConvertible, Sendable {
        let head: String
        var method = RequestHead.Method.get
        var path = "/"
        var query: String?
        var contentLength = 0
        var keepAlive = true
        var expectsContinue = false
        var fromBrowser = false

        init(_ lines: String..., expecting: (inout Good) -> Void = { _ in }) {
            head = lines.map { $0 + "\r\n" }.joined() + "\r\n"
            expecting(&self)
        }

        var testDescription: String { head }
    }

    private func parsed(_ bytes: [UInt8]) -> (head: RequestHead, length: Int)? {
        withExactCopy(of: bytes) {
            guard case .head(let head, let length) = RequestHead.parse($0) else { return nil }
            return (head, length)
        }
    }

    private func text(_ range: Range<Int>, _ bytes: [UInt8]) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }
}
