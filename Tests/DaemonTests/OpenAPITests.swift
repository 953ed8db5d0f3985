import AgentCore
import Foundation
import Glibc
import Testing

@Suite("The API is what its description says", .timeLimit(.minutes(25)))
struct OpenAPITests {
    @Test("Every route is described, with its methods")
    func routes() throws {
        let document = try OpenAPIDocument.checked()
        let labels = Set(Route.Label.allCases.map { "\($0)" }).subtracting(["none"])
        #expect(Set(document.operations.map(\.id)) == labels)
        #expect(document.codes == Set(Problem.Code.allCases.map(\.rawValue)))
        let daemon = try RunningDaemon()
        for (path, operations) in Dictionary(grouping: document.operations, by: \.path) {
            let client = try daemon.connect()
            let target = path.replacing(/\{[a-z]*\}/, with: "x")
            try client.send("BREW \(target) HTTP/1.1\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.status == 405)
            let allowed = answer.headers["allow"]?.split(separator: ", ").map(String.init) ?? []
            #expect(Set(allowed).subtracting(["HEAD"]) == Set(operations.map(\.method)))
            #expect(allowed.contains("HEAD") == operations.contains { $0.method == "GET" })
        }
    }

    @Test("Every success and every code that is described can be had")
    func outcomes() throws {
        let seen = Seen()
        try successes(seen)
        try refusals(seen)
        try failures(seen)
        let document = try OpenAPIDocument.checked()
        for operation in document.operations {
            for status in operation.statuses where status < 300 {
                #expect(seen.outcomes.contains("\(operation.id) \(status)"))
            }
        }
        #expect(seen.codes == document.codes)
    }

    /// What was answered, by operation and status, and the codes of problems.
    private final class Seen {
        var outcomes: Set<String> = []
        var codes: Set<String> = []

        func note(_ answer: RawClient.Answer, to method: String, _ target: String) throws {
            let document = try OpenAPIDocument.checked()
            document.expect(answer, to: method, target)
            if let operation = document.operation(method, target) {
                outcomes.insert("\(operation.id) \(answer.status)")
            }
            if answer.status >= 400, method != "HEAD" {
                codes.insert(try JSONObject(answer.body).text("code"))
            }
        }
    }

    @discardableResult
    private func ask(
        _ daemon: RunningDaemon, _ seen: Seen, _ method: String, _ target: String,
        _ body: String? = nil, fields: String = ""
    ) throws -> RawClient.Answer {
        let client = try daemon.connect()
        let length = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
        try client.send("\(method) \(target) HTTP/1.1\r\n\(fields)\(length)\r\n\(body ?? "")")
        let answer = try client.answer(hasBody: method != "HEAD")
        try seen.note(answer, to: method, target)
        return answer
    }

    private func signIn(
        _ stage: Stage, as person: SandboxServer.Person = .ada, password: String? = nil,
        key: String? = nil
    ) -> String {
        let key = key ?? stage.server.nativeKey
        return #"{"url":"\#(stage.server.url)","publishable_key":"\#(key)","#
            + #""email":"\#(person.email)","password":"\#(password ?? person.password)"}"#
    }

    private func successes(_ seen: Seen) throws {
        let stage = try Stage()
        let daemon = stage.daemon
        try ask(daemon, seen, "POST", "/v1/profiles/default/login", signIn(stage))
        try ask(daemon, seen, "POST", "/v1/profiles/other/login", signIn(stage))
        let text = try ask(daemon, seen, "GET", "/v1/token", fields: "Accept: text/plain\r\n")
        #expect(text.headers["content-type"] == "text/plain; charset=utf-8")
        for target in [
            "/v1/token?profile=other&min_validity=60&timeout=1", "/v1/profiles",
            "/v1/profiles/default", "/v1/status", "/v1/metrics", "/v1/profiles/default/identity",
            "/v1/profiles/default/sessions",
        ] {
            try ask(daemon, seen, "GET", target)
            try ask(daemon, seen, "HEAD", target)
        }
        try ask(daemon, seen, "HEAD", "/v1/events")
        try ask(daemon, seen, "POST", "/v1/profiles/default/refresh?if_generation=0")
        let sessions = try ask(daemon, seen, "GET", "/v1/profiles/default/sessions")
        let id = try JSONObject(sessions.body).objects("sessions")[0].text("id")
        try ask(daemon, seen, "DELETE", "/v1/profiles/default/sessions/\(id)")
        try ask(daemon, seen, "POST", "/v1/profiles/other/logout?local=1")
        try secondFactor(stage, seen)
    }

    private func secondFactor(_ stage: Stage, _ seen: Seen) throws {
        let login = signIn(stage, as: .hedy)
        let answer = try ask(stage.daemon, seen, "POST", "/v1/profiles/hedy/login", login)
        let challenge = try JSONObject(answer.body).object("mfa").text("challenge")
        let target = "/v1/profiles/hedy/mfa"
        let start = #"{"challenge":"\#(challenge)","factor":"#
        try ask(stage.daemon, seen, "POST", target, start + #""email_otp","send":true}"#)
        // What the sandbox prints of the identity that needs one.
        try ask(stage.daemon, seen, "POST", target, start + #""totp","code":"135790"}"#)
    }

    private func refusals(_ seen: Seen) throws {
        let stage = try Stage()
        let daemon = stage.daemon
        try ask(daemon, seen, "GET", "/v1/token?timeout=x")
        try ask(daemon, seen, "POST", "/v1/profiles/default/login", "{")
        try ask(daemon, seen, "POST", "/v1/profiles/default/login")
        try ask(daemon, seen, "POST", "/v1/profiles/default/mfa")
        try ask(daemon, seen, "POST", "/v1/profiles/default/mfa", #"{"challenge":"none"}"#)
        try ask(daemon, seen, "GET", "/v1/token", fields: "Origin: null\r\n")
        try ask(daemon, seen, "GET", "/v1/nothing")
        try ask(daemon, seen, "OPTIONS", "*")
        try ask(daemon, seen, "DELETE", "/v1/status")
        try ask(daemon, seen, "GET", "/v1/token?profile=nobody")
        let heavy = String(repeating: "x", count: Limits.requestBodyBytes + 1)
        try ask(daemon, seen, "POST", "/v1/profiles/default/login", heavy)
        let long = String(repeating: "x", count: Limits.requestHeadBytes)
        try ask(daemon, seen, "GET", "/v1/status", fields: "X: \(long)\r\n")
        let login = "/v1/profiles/default/login"
        try ask(daemon, seen, "POST", login, signIn(stage, password: "wrong"))
        try ask(daemon, seen, "POST", login, signIn(stage, key: stage.server.webKey))
        let crowded = try RunningDaemon(configuration: "[limits]\nConnections=1\n")
        let only = try crowded.connect()
        try only.expectService()
        try seen.note(try crowded.connect().answer(), to: "GET", "/v1/status")
    }

    private func failures(_ seen: Seen) throws {
        let stage = try Stage()
        let daemon = stage.daemon
        let login = "/v1/profiles/default/login"
        try ask(daemon, seen, "POST", login, signIn(stage))
        try stage.server.plan("status-500", #","on":"me""#)
        try ask(daemon, seen, "GET", "/v1/profiles/default/identity")
        try stage.server.plan("status-429", #","on":"me","retry_after":"7""#)
        let throttled = try ask(daemon, seen, "GET", "/v1/profiles/default/identity")
        #expect(throttled.headers["retry-after"] == "7")
        try ask(daemon, seen, "DELETE", "/v1/profiles/default/sessions/none")
        try stage.server.plan("hold")
        try ask(daemon, seen, "POST", "/v1/profiles/default/refresh?timeout=1")
        // The caller's deadline may have come before the request has.
        try eventually("the server holds its answer back") { try stage.server.held() == 1 }
        try stage.server.release()
        try eventually("the rotation is over") { try stage.generation() == 1 }
        try stage.desktop.lock()
        try ask(daemon, seen, "POST", login, signIn(stage))
        try stage.desktop.unlock()
        try stage.server.revokeSessions(of: .ada)
        try eventually("a verdict") {
            try ask(daemon, seen, "POST", "/v1/profiles/default/refresh").status == 401
        }
        try stage.server.end()
        try ask(daemon, seen, "POST", login, signIn(stage))
        let lonely = try RunningDaemon()
        try ask(lonely, seen, "POST", login, signIn(stage))
        try storageFailure(seen)
    }

    private func storageFailure(_ seen: Seen) throws {
        let desktop = try PrivateDesktop()
        let server = try SandboxServer()
        // A file where the state directory belongs.
        try desktop.directory.write("", "state")
        let daemon = try RunningDaemon(in: desktop.directory, environment: desktop.environment)
        let person = SandboxServer.Person.ada
        try ask(
            daemon, seen, "POST", "/v1/profiles/default/login",
            #"{"url":"\#(server.url)","publishable_key":"\#(server.nativeKey)","#
                + #""email":"\#(person.email)","password":"\#(person.password)"}"#)
    }
}
