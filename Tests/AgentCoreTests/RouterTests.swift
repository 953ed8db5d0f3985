import AgentCore
import Testing

@Suite("A request leads to one route or to a problem that says what is wrong")
struct RouterTests {
    private static let work = makeName("work")

    @Test(
        "Every resource of the API is found",
        arguments: [
            (
                "GET /v1/token",
                Route.token(.standard, minimumValidity: nil, timeout: .seconds(10), asText: false)
            ),
            (
                "GET /v1/token?profile=work&min_validity=0&timeout=120",
                .token(
                    work, minimumValidity: .seconds(0), timeout: .seconds(120), asText: false)
            ),
            ("GET /v1/profiles", .profiles),
            ("GET /v1/profiles/work", .profile(work)),
            ("GET /v1/profiles/w%6Frk", .profile(work)),
            ("POST /v1/profiles/work/login", .logIn(work)),
            ("POST /v1/profiles/work/mfa", .multiFactor(work)),
            (
                "POST /v1/profiles/work/refresh",
                .refresh(work, ifGeneration: nil, timeout: .seconds(10))
            ),
            (
                "POST /v1/profiles/work/refresh?if_generation=7&timeout=0",
                .refresh(work, ifGeneration: 7, timeout: .seconds(0))
            ),
            ("POST /v1/profiles/work/logout", .logOut(work, isLocal: false)),
            ("POST /v1/profiles/work/logout?local=0", .logOut(work, isLocal: false)),
            ("POST /v1/profiles/work/logout?local=1", .logOut(work, isLocal: true)),
            ("GET /v1/profiles/work/identity", .identity(work)),
            ("GET /v1/profiles/work/sessions", .sessions(work)),
            ("DELETE /v1/profiles/work/sessions/a%2Fb", .revokeSession(work, id: "a/b")),
            ("GET /v1/events", .events(nil)),
            ("GET /v1/events?profile=work", .events(work)),
            ("GET /v1/status", .status),
            ("GET /v1/metrics", .metrics),
        ])
    func routes(line: String, route: Route) {
        #expect(outcome(line) == .success(route))
    }

    @Test("HEAD leads where GET does")
    func head() {
        #expect(outcome("HEAD /v1/status") == .success(.status))
    }

    @Test("The bare token is for those who would rather have text")
    func accept() {
        for (accept, asText) in [
            ("text/plain", true), ("application/json", false), ("*/*", false),
            ("text/plain;q=0.1, application/json", false),
        ] {
            #expect(
                outcome("GET /v1/token", "Accept: \(accept)")
                    == .success(
                        .token(
                            .standard, minimumValidity: nil, timeout: .seconds(10),
                            asText: asText)))
        }
    }

    @Test(
        "What a parameter may not be is told with what it may be",
        arguments: [
            ("GET /v1/token?timeout=121", "0 to 120"),
            ("GET /v1/token?timeout=-1", "0 to 120"),
            ("GET /v1/token?timeout=", "0 to 120"),
            ("GET /v1/token?timeout", "0 to 120"),
            ("GET /v1/token?timeout=1.5", "whole number"),
            ("GET /v1/token?timeout=%2B5", "whole number"),
            ("GET /v1/token?min_validity=99999999999999999999", "whole number"),
            ("GET /v1/token?min_validity=٣", "whole number"),
            ("GET /v1/token?min_validty=3", "no parameter 'min_validty'"),
            ("GET /v1/token?if_generation=3", "no parameter 'if_generation'"),
            ("GET /v1/status?profile=work", "it takes none"),
            ("GET /v1/token?timeout=1&timeout=1", "more than once"),
            ("GET /v1/token?profile=", "empty"),
            ("GET /v1/token?profile=.hidden", "start"),
            ("GET /v1/token?profile=a%zz", "decoded"),
            ("GET /v1/profiles/a%00b", "decoded"),
            ("GET /v1/profiles/a%2Fb", "not allowed"),
            ("POST /v1/profiles/work/logout?local=2", "0 to 1"),
            ("POST /v1/profiles/work/logout?local=yes", "0 to 1"),
        ])
    func badParameters(line: String, words: String) throws {
        // A letter that is no ASCII reaches the router percent-encoded.
        let line = line.replacing("٣", with: "%D9%A3")
        let misrouted = try #require(problem(line))
        #expect(misrouted.problem.code == .badRequest)
        #expect(misrouted.problem.detail.contains(words), "\(misrouted.problem.detail)")
    }

    @Test(
        "What is nowhere is not found",
        arguments: [
            "GET /", "GET /v1", "GET /v1/", "GET /v1/tokens", "GET /v1/token/", "GET /V1/token",
            "GET //v1/token", "GET /v1/profiles/", "GET /v1/profiles//login",
            "POST /v1/profiles/work/login/x", "DELETE /v1/profiles/work/sessions/",
            "GET /v2/token", "GET /v1/profiles/work/secrets",
        ])
    func notFound(line: String) throws {
        #expect(try #require(problem(line)).problem.code == .notFound)
    }

    @Test(
        "The wrong method is told the right one",
        arguments: [
            ("POST /v1/token", "GET, HEAD"), ("PUT /v1/profiles/work", "GET, HEAD"),
            ("GET /v1/profiles/work/login", "POST"), ("HEAD /v1/profiles/work/logout", "POST"),
            ("GET /v1/profiles/work/sessions/1", "DELETE"), ("BREW /v1/status", "GET, HEAD"),
            ("OPTIONS /v1/status", "GET, HEAD"), ("OPTIONS *", "GET, HEAD, POST, DELETE"),
        ])
    func methods(line: String, allow: String) throws {
        let misrouted = try #require(problem(line))
        #expect(misrouted.problem.code == .methodNotAllowed)
        #expect(misrouted.allow == allow)
    }

    @Test("A web page is refused before anything else is looked at")
    func browsers() throws {
        for field in [
            "Origin: null", "Referer: http://localhost/", "Host: canopyd.example",
            "Host: 127.0.0.1",
        ] {
            for line in ["GET /v1/token", "POST /nowhere", "GET /v1/token?timeout=x"] {
                #expect(try #require(problem(line, field)).problem.code == .forbidden)
            }
        }
        #expect(outcome("GET /v1/status", "Host: localhost:8080") == .success(.status))
    }

    // MARK: Asking

    private static func makeName(_ text: String) -> ProfileName {
        do {
            return try ProfileName(text)
        } catch {
            preconditionFailure("\(text) is no profile name")
        }
    }

    private func outcome(_ line: String, _ field: String = "User-Agent: x")
        -> Result<Route, Router.Misrouted>
    {
        let bytes = Array("\(line) HTTP/1.1\r\n\(field)\r\n\r\n".utf8)
        return bytes.withUnsafeBytes { bytes in
            guard case .head(let head, _) = RequestHead.parse(bytes) else {
                preconditionFailure("\(line) has no head")
            }
            return Result { () throws(Router.Misrouted) in try Router.route(head, bytes) }
        }
    }

    private func problem(_ line: String, _ field: String = "User-Agent: x") -> Router.Misrouted? {
        guard case .failure(let misrouted) = outcome(line, field) else { return nil }
        return misrouted
    }
}
