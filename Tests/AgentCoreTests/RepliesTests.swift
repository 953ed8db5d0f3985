import AgentCore
import Foundation
import Testing

@Suite("Replies say on the wire what INTERFACE says")
struct RepliesTests {
    private static let date = WallTime(seconds: 784_111_777)
    private let identity = Identity(id: "id_1", email: #"a"b@example.com"#)

    @Test("A problem is an RFC 9457 object, and its status and waiting are headers as well")
    func problem() throws {
        let problem = Problem(
            .throttled, "wait", profile: .standard, retryAfter: 7, fix: "canopyctl status")
        let (head, body) = try parts(of: Reply(problem), closes: true)
        #expect(head.hasPrefix("HTTP/1.1 429 Too Many Requests\r\n"))
        #expect(head.contains("\r\nRetry-After: 7\r\n"))
        #expect(head.contains("\r\nConnection: close\r\n"))
        #expect(head.contains("\r\nContent-Type: application/problem+json\r\n"))
        #expect(head.contains("\r\nCache-Control: no-store\r\n"))
        #expect(head.contains("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))
        let object = try #require(
            JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        #expect(object["type"] as? String == "urn:canopyd:problem:throttled")
        #expect(object["status"] as? Int == 429)
        #expect(object["code"] as? String == "throttled")
        #expect(object["profile"] as? String == "default")
        #expect(object["retry_after"] as? Int == 7)
        #expect(object["reason"] == nil)
    }

    @Test("A 401 has a challenge, and nothing else has one")
    func challenge() throws {
        for code in Problem.Code.allCases {
            let (head, _) = try parts(of: Reply(Problem(code, "why")), closes: false)
            #expect(
                head.contains("\r\nWWW-Authenticate: Canopy-Sign-In realm=\"canopyd\"\r\n")
                    == (code.status == 401))
        }
    }

    @Test("A token object has the members of INTERFACE, and never fewer than no seconds left")
    func token() throws {
        for (remaining, seconds) in [(0, 0), (9, 9), (3599, 3599), (-1, 0)] as [(Int64, Int64)] {
            let reply = Reply.token(view(.seconds(remaining)), in: .ordinary)
            let (_, body) = try parts(of: reply, closes: false)
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
            #expect(object["expires_in"] as? Int64 == seconds)
            #expect(
                Set(object.keys) == [
                    "profile", "access_token", "token_type", "expires_at", "expires_in",
                    "refresh_at", "generation", "identity",
                ])
            #expect((object["identity"] as? [String: String])?["email"] == identity.email)
            #expect(object["generation"] as? Int == 3)
            #expect((object["access_token"] as? String)?.utf8.count == 4)
        }
    }

    @Test("A reply in one piece is the head and the body of the same reply")
    func onePiece() throws {
        let reply = Reply.token(view(.seconds(9)), in: .ordinary)
        let (head, body) = try parts(of: reply, closes: false)
        #expect(
            reply.inOnePiece(in: .ordinary, date: RepliesTests.date).withBytes { Array($0) }
                == Array(head.utf8) + body)
    }

    @Test("Nothing follows a 204, not even a length")
    func noContent() throws {
        let (head, _) = try parts(of: .done, closes: false)
        #expect(!head.contains("Content-"))
        #expect(head.hasSuffix("\r\n\r\n"))
    }

    @Test("Events have increasing ids and one line of data")
    func events() throws {
        var stream = EventStream()
        let now = WallTime(seconds: 1_700_000_000)
        let first = stream.rotated(.standard, generation: 1, expiresAt: now, refreshAt: now)
        let second = stream.state(
            ProfileView(
                profile: .standard, state: .active, reason: nil, url: "https://x\n",
                identity: identity,
                generation: 1, expiresAt: now, refreshAt: nil, lastRotationAt: nil,
                lastError: (.timeout, "a\nb", now), signedInAt: now))
        #expect(String(decoding: first, as: UTF8.self).hasPrefix("event: rotated\nid: 1\ndata: {"))
        #expect(String(decoding: second, as: UTF8.self).hasPrefix("event: state\nid: 2\ndata: {"))
        for event in [first, second] {
            // Three lines and the empty one that ends an event.
            #expect(event.count { $0 == UInt8(ascii: "\n") } == 4)
        }
    }

    @Test("The metrics end as OpenMetrics ends, and count what was answered")
    func metrics() {
        var statistics = RequestStatistics()
        statistics.answered(.token, status: 200, after: .milliseconds(2))
        statistics.answered(.token, status: 200, after: .seconds(1000))
        let view = MetricsView(
            version: #"1"2"#, profiles: [(.standard, .active, WallTime(seconds: 5))],
            rotations: [(.standard, "ok", 4)], exchanges: [(.rotate, .exchanges)],
            requests: statistics, connections: 2, keyring: .locked)
        let text = String(decoding: view.text, as: UTF8.self)
        #expect(text.hasSuffix("\n# EOF\n"))
        #expect(text.contains(#"canopyd_build_info{version="1\"2"} 1"#))
        #expect(text.contains(#"canopyd_requests_total{route="token",status="200"} 2"#))
        #expect(text.contains(#"canopyd_request_duration_seconds_bucket{le="0.01"} 1"#))
        #expect(text.contains(#"canopyd_request_duration_seconds_bucket{le="120.0"} 1"#))
        #expect(text.contains(#"canopyd_request_duration_seconds_bucket{le="+Inf"} 2"#))
        #expect(text.contains(#"canopyd_keyring_state{state="locked"} 1"#))
        #expect(text.contains(#"canopyd_profile_state{profile="default",state="active"} 1"#))
    }

    // MARK: Parts

    private func view(_ remaining: TimeSpan) -> TokenView {
        let now = WallTime(seconds: 1_700_000_000)
        let life = AccessTokenLife(
            lifetime: .seconds(3600),
            sent: Stamp(
                Moment(boot: BootTime(nanoseconds: 0), wall: now), boot: BootID("boot")),
            expiry: nil, serverClockOffset: nil)
        let value = Array(#"a"\b"#.utf8).withUnsafeBytes { Secret(copying: $0, in: .ordinary) }
        return TokenView(
            profile: .standard, token: AccessToken(value: value, type: "Bearer", life: life),
            remaining: remaining, refreshAt: now, generation: 3, identity: identity)
    }

    private func parts(of reply: Reply, closes: Bool) throws -> (head: String, body: [UInt8]) {
        var head: [UInt8] = []
        reply.appendHead(to: &head, closes: closes, date: RepliesTests.date)
        let text = try #require(String(validating: head, as: UTF8.self))
        let body = bytes(of: reply.body)
        if reply.status != 204 { #expect(text.contains("\r\nContent-Length: \(body.count)\r\n")) }
        return (text, body)
    }

    private func bytes(of body: Reply.Body) -> [UInt8] {
        switch body {
        case .none, .stream: []
        case .bytes(let bytes): bytes
        case .secret(let secret): secret.withBytes { Array($0) }
        case .line(let secret): secret.withBytes { Array($0) } + [UInt8(ascii: "\n")]
        }
    }
}
