import Foundation
import Glibc
import Testing

/// The sandbox as a process, and what tests ask of it.
final class SandboxServer {
    let url: String
    let port: UInt16
    let nativeKey: String
    let webKey: String
    private var program: Program

    struct Person {
        let email: String
        let password: String

        static let ada = Person(
            email: "ada@example.com", password: "correct horse battery staple")
        static let grace = Person(email: "grace@example.com", password: "nanoseconds")

        /// Whom `--identities` adds, from 1 on.
        static func user(_ number: Int) -> Person {
            Person(email: "user\(number)@example.com", password: "password of user\(number)")
        }

        /// Has to prove a second factor.
        static let hedy = Person(email: "hedy@example.com", password: "frequency hopping")
    }

    /// `lifetime` in seconds, of access tokens.
    init(lifetime: Int = 900, _ options: [String] = [], under wrapper: [String] = []) throws {
        let program = try Program(
            "canopy-sandbox", ["--lifetime", "\(lifetime)"] + options, environment: [:],
            under: wrapper)
        func value(after words: String) -> String? {
            program.output.split(separator: "\n").first { $0.hasPrefix(words + " ") }
                .map { String($0.dropFirst(words.utf8.count + 1)) }
        }
        try eventually("the sandbox says who can sign in") {
            value(after: "identity \(Person.grace.email)") != nil
        }
        self.program = program
        url = try #require(value(after: "listening"))
        port = try #require(url.split(separator: ":").last.flatMap { UInt16($0) })
        nativeKey = try #require(value(after: "native key"))
        webKey = try #require(value(after: "web key"))
    }

    /// Stops its process where it stands: nobody answers, and the connections hang.
    func freeze() { kill(program.pid, SIGSTOP) }
    func thaw() { kill(program.pid, SIGCONT) }

    /// Ends it; everything it knew is gone.
    func end() throws { try program.end(by: SIGKILL) }

    // MARK: Its own requests

    private func ask(_ method: String, _ path: String, _ body: String = "") throws -> JSONObject {
        let client = try RawClient(port: port)
        try client.send(
            "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let answer = try client.answer()
        try #require(answer.status == 200, "the sandbox: \(answer.body)")
        return try JSONObject(answer.body)
    }

    /// Plans a fault: its name and the rest of its members, as JSON.
    func plan(_ name: String, _ more: String = "") throws {
        _ = try ask("POST", "/admin/faults", #"{"name":"\#(name)"\#(more)}"#)
    }

    /// Plans nothing more.
    func heal() throws { _ = try ask("DELETE", "/admin/faults") }

    func release() throws { _ = try ask("POST", "/admin/release") }

    /// Its clock jumps ahead.
    func advance(seconds: Int) throws {
        _ = try ask("POST", "/admin/advance", #"{"seconds":\#(seconds)}"#)
    }

    func revokeSessions(of person: Person) throws {
        _ = try ask("POST", "/admin/revoke-identity", #"{"email":"\#(person.email)"}"#)
    }

    /// Sets its clock forward.
    func advance(by seconds: Int) throws {
        _ = try ask("POST", "/admin/advance", #"{"seconds":\#(seconds)}"#)
    }

    /// Presents a refresh token, as somebody who has a copy of the session would.
    ///
    /// Returns its successor.
    func rotate(_ refreshToken: String) throws -> String {
        try ask(
            "POST", "/v1/identity/auth/refresh", #"{"refresh_token":"\#(refreshToken)"}"#
        ).object("data").text("refresh_token")
    }

    /// Whether the person may sign in, and rotate.
    func setActive(_ person: Person, _ isActive: Bool) throws {
        _ = try ask(
            "POST", "/admin/set-active", #"{"email":"\#(person.email)","active":\#(isActive)}"#)
    }

    /// The sign-in of a person who has one.
    func family(of person: Person) throws -> JSONObject {
        let families = try families().filter { try $0.text("email") == person.email }
        return try #require(families.last, "\(person.email) never signed in")
    }

    func state() throws -> JSONObject { try ask("GET", "/admin/state") }

    /// Its sign-ins, oldest first.
    func families() throws -> [JSONObject] { try state().objects("families") }

    /// How many answers it is holding back.
    func held() throws -> Int { try state().number("held") }

    /// The refresh requests of all sign-ins that have arrived so far.
    func refreshes() throws -> Int {
        try families().map { try $0.number("requests_arrived") }.reduce(0, +)
    }

    /// No replay that Canopy would mind, nothing older after something newer, and never two
    /// requests of one session at once.
    func expectNoIncident(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let state = try state()
        #expect(try state.number("family_revocations") == 0, sourceLocation: sourceLocation)
        #expect(try state.number("identity_revocations") == 0, sourceLocation: sourceLocation)
        for family in try state.objects("families") {
            #expect(
                try family.number("generations_arrived_backwards") == 0,
                sourceLocation: sourceLocation)
            #expect(
                try family.number("maximum_in_flight") <= 1, sourceLocation: sourceLocation)
        }
    }
}
