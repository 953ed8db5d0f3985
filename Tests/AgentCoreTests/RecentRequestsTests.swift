import AgentCore
import Testing

@Suite("A request that is remembered means what it meant when it was parsed")
struct RecentRequestsTests {
    @Test("The same bytes are known again, and no others")
    func sameBytes() {
        var recent = RecentRequests(in: .ordinary)
        let request = "GET /v1/token?profile=work&min_validity=60 HTTP/1.1\r\nHost: canopyd\r\n\r\n"
        #expect(wish(request, recent) == nil)
        serve(request, &recent)
        let known = wish(request, recent)
        #expect(known?.profile.text == "work" && known?.minimumValidity == .seconds(60))
        for index in request.utf8.indices {
            var bytes = Array(request.utf8)
            bytes[request.utf8.distance(from: request.startIndex, to: index)] ^= 1
            #expect(bytes.withUnsafeBytes { recent.wish(of: $0) } == nil)
        }
        #expect(wish(String(request.dropLast()), recent) == nil)
        #expect(wish(request + "G", recent) == nil)
        // Of the same place, and longer by a multiple of eight.
        #expect(wish(request + String(repeating: "x", count: Limits.recentRequests), recent) == nil)
    }

    @Test(
        "What is not a token object on a kept connection is not remembered",
        arguments: [
            "GET /v1/token HTTP/1.1\r\nAccept: text/plain\r\n\r\n",
            "GET /v1/token HTTP/1.1\r\nConnection: close\r\n\r\n",
            "GET /v1/token HTTP/1.0\r\n\r\n",
            "HEAD /v1/token HTTP/1.1\r\n\r\n",
            "GET /v1/token HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
            "GET /v1/status HTTP/1.1\r\n\r\n",
            "POST /v1/profiles/work/refresh HTTP/1.1\r\n\r\n",
        ])
    func others(request: String) {
        var recent = RecentRequests(in: .ordinary)
        serve(request, &recent)
        #expect(wish(request, recent) == nil)
    }

    @Test("A request that is too long is not remembered, and one of the length before it is")
    func length() {
        var recent = RecentRequests(in: .ordinary)
        for (count, isKept) in [
            (Limits.recentRequestBytes, true), (Limits.recentRequestBytes + 1, false),
        ] {
            let start = "GET /v1/token HTTP/1.1\r\nX: "
            let request =
                start + String(repeating: "x", count: count - start.utf8.count - 4) + "\r\n\r\n"
            serve(request, &recent)
            #expect((wish(request, recent) != nil) == isKept)
        }
    }

    @Test("A place has one request: the last of those that fit it")
    func replaced() {
        var recent = RecentRequests(in: .ordinary)
        let first = "GET /v1/token?profile=work HTTP/1.1\r\n\r\n"
        let second = "GET /v1/token?profile=home HTTP/1.1\r\n\r\n"
        serve(first, &recent)
        serve(second, &recent)
        #expect(wish(first, recent) == nil)
        #expect(wish(second, recent)?.profile.text == "home")
        serve(first, &recent)
        #expect(wish(first, recent)?.profile.text == "work")
    }

    // MARK: Serving

    private func wish(_ request: String, _ recent: borrowing RecentRequests) -> RecentRequests.Wish?
    {
        Array(request.utf8).withUnsafeBytes { recent.wish(of: $0) }
    }

    /// Parses and routes the request as a connection does, and lets it be remembered.
    private func serve(_ request: String, _ recent: inout RecentRequests) {
        Array(request.utf8).withUnsafeBytes { bytes in
            guard case .head(let head, _) = RequestHead.parse(bytes) else {
                preconditionFailure("no head: \(request)")
            }
            do {
                recent.remember(try Router.route(head, bytes), of: head, bytes)
            } catch {
                preconditionFailure("no route: \(request)")
            }
        }
    }
}
