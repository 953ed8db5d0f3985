import CLinux
import Foundation
import Glibc
import Testing

/// Everything that a user has: a desktop, a server, canopyd between them, and canopyctl.
final class Stage {
    let desktop: PrivateDesktop
    let server: SandboxServer
    private(set) var daemon: RunningDaemon

    /// The command that runs canopyd from now on; empty for none but itself.
    var wrapper: [String]

    /// Another copy of canopyd to start from now on.
    var program: String?
    private let manager: ServiceManager?

    /// `lifetime` in seconds, of access tokens; `sandbox` are options of its; `desktop` is one that
    /// has something that others have not, else `keyring` says who keeps the secrets on it; `wrapper` is
    /// a command that runs canopyd in its own place, and server and canopyd run in `namespaces` if there
    /// are any; `manager` keeps descriptors from one start to the next.
    init(
        lifetime: Int = 900, sandbox: [String] = [], on desktop: PrivateDesktop? = nil,
        keyring: PrivateDesktop.Keyring = .gnomeKeyring, under wrapper: [String] = [],
        in namespaces: Namespaces? = nil, manager: ServiceManager? = nil
    ) throws {
        let wrapper = (namespaces?.entrance() ?? []) + wrapper
        let desktop = try desktop ?? PrivateDesktop(keyring)
        self.desktop = desktop
        self.wrapper = wrapper
        self.manager = manager
        server = try SandboxServer(
            lifetime: lifetime, sandbox, under: namespaces?.entrance() ?? [])
        daemon = try RunningDaemon(
            in: desktop.directory, environment: desktop.environment, under: wrapper,
            manager: manager)
    }

    /// An answer of canopyd's, whose body is an object or nothing.
    struct Answer {
        let status: Int
        let head: String
        let body: String

        init(_ answer: RawClient.Answer) {
            (status, head, body) = (answer.status, answer.head, answer.body)
        }

        var json: JSONObject { get throws { try JSONObject(body) } }
        var code: String { get throws { try json.text("code") } }
        var isEmpty: Bool { body.isEmpty }
    }

    /// The double, on a stage that has one.
    var double: MockSecretService {
        get throws { try #require(desktop.double, "this stage has a real keyring") }
    }

    // MARK: canopyd

    func startDaemon(with changes: [String: String] = [:]) throws {
        let environment = desktop.environment.merging(changes) { $1 }
        daemon = try RunningDaemon(
            in: desktop.directory, environment: environment, under: wrapper, manager: manager,
            program: program)
    }

    /// Kills it with -9, and starts it again; an exchange that runs is left alone.
    func killAndRestart() throws {
        try killDaemon()
        try startDaemon()
    }

    func killDaemon() throws {
        #expect(try daemon.end(by: SIGKILL) == 128 + SIGKILL)
    }

    /// The exchanges that run for this canopyd.
    func exchanges() throws -> [pid_t] {
        let children = try String(
            contentsOfFile: "/proc/\(daemon.pid)/task/\(daemon.pid)/children", encoding: .utf8)
        return children.split(separator: " ").compactMap { pid_t($0) }
    }

    /// How much the successor slots of this canopyd hold, told by the size of their files; nil where
    /// nobody may look: a process like canopyd shows its descriptors to root alone.
    func slotSize() throws -> Int? {
        guard geteuid() == 0 else { return nil }
        let descriptors = "/proc/\(daemon.pid)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: descriptors).reduce(0) {
            size, name in
            var target = [CChar](repeating: 0, count: 256)
            let path = descriptors + "/" + name
            guard readlink(path, &target, 255) > 0,
                String(decoding: target.map(UInt8.init(bitPattern:)), as: UTF8.self)
                    .hasPrefix("/memfd:canopyd-successor")
            else { return size }
            var status = stat()
            try #require(stat(path, &status) == 0)
            return size + Int(status.st_size)
        }
    }

    /// One request on a connection of its own; the answer is held against the API's description.
    func ask(
        _ method: String, _ target: String, _ body: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Answer {
        let client = try daemon.connect()
        try client.send(Stage.request(method, target, body))
        let answer = try client.answer(hasBody: method != "HEAD")
        try OpenAPIDocument.checked().expect(
            answer, to: method, target, sourceLocation: sourceLocation)
        return Answer(answer)
    }

    static func request(_ method: String, _ target: String, _ body: String? = nil) -> String {
        "\(method) \(target) HTTP/1.1\r\nHost: canopyd\r\n"
            + (body.map {
                "Content-Type: application/json\r\nContent-Length: \($0.utf8.count)\r\n\r\n\($0)"
            } ?? "\r\n")
    }

    // MARK: What users do

    /// Signs in; the caller looks at the answer.
    func tryLogin(
        _ profile: String = "default", as person: SandboxServer.Person = .ada,
        key: String? = nil, password: String? = nil, url: String? = nil
    ) throws -> Answer {
        try ask(
            "POST", "/v1/profiles/\(profile)/login",
            credentials(person, key: key, password: password, url: url))
    }

    /// The body of a sign-in.
    func credentials(
        _ person: SandboxServer.Person = .ada, key: String? = nil, password: String? = nil,
        url: String? = nil
    ) -> String {
        #"{"url":"\#(url ?? server.url)","publishable_key":"\#(key ?? server.nativeKey)","#
            + #""email":"\#(person.email)","password":"\#(password ?? person.password)"}"#
    }

    func logIn(_ profile: String = "default", as person: SandboxServer.Person = .ada) throws {
        let answer = try tryLogin(profile, as: person)
        try #require(answer.status == 200, "the sign-in failed: \(answer.head)")
    }

    func token(_ profile: String = "default", _ parameters: String = "") throws -> Answer {
        try ask("GET", "/v1/token?profile=\(profile)\(parameters)")
    }

    /// The token object that has to come.
    func goodToken(
        _ profile: String = "default", sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> JSONObject {
        let answer = try token(profile)
        let problem = answer.status == 200 ? "" : try answer.json.text("detail")
        try #require(answer.status == 200, "no token: \(problem)", sourceLocation: sourceLocation)
        return try answer.json
    }

    func profile(_ profile: String = "default") throws -> JSONObject {
        try ask("GET", "/v1/profiles/\(profile)").json
    }

    /// Starts canopyd anew with so many more profiles, of which nothing is in the keyring; returns
    /// how many.
    func crowd(_ count: Int) throws -> Int {
        try killDaemon()
        let state = desktop.directory.path + "/state/canopyd"
        let machine = try #require(
            try FileManager.default.contentsOfDirectory(atPath: state).first)
        let known = "\(state)/\(machine)/default.json"
        for index in 0..<count {
            try FileManager.default.copyItem(
                atPath: known, toPath: "\(state)/\(machine)/p\(index).json")
        }
        try startDaemon()
        try eventually(within: 90, "all are served") {
            try ask("GET", "/v1/profiles").json.objects("profiles")
                .allSatisfy { try $0.text("state") != "refreshing" }
        }
        return count
    }

    func generation(_ profile: String = "default") throws -> Int {
        try self.profile(profile).number("generation")
    }

    func state(_ profile: String = "default") throws -> String {
        try self.profile(profile).text("state")
    }

    /// Another session of the same person's, which this canopyd knows nothing of.
    func logInElsewhere() throws {
        let client = try RawClient(port: server.port)
        let person = SandboxServer.Person.ada
        let body =
            #"{"publishable_key":"\#(server.nativeKey)","email":"\#(person.email)","#
            + #""password":"\#(person.password)"}"#
        try client.send(
            "POST /v1/identity/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
                + body)
        let status = try client.answer().status
        try #require(status == 200)
    }

    func refresh(_ profile: String = "default") throws -> Answer {
        try ask("POST", "/v1/profiles/\(profile)/refresh")
    }

    /// A rotation works, now or as soon as floor and hold are over.
    func expectRotation(
        _ profile: String = "default", sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try generation(profile)
        try eventually("a rotation", sourceLocation: sourceLocation) {
            _ = try refresh(profile)
            return try generation(profile) > before
        }
    }

    /// A program of this package, run to its end: its exit code and all that it wrote.
    func canopyctl(_ arguments: String..., input: String = "") throws -> (
        exitCode: Int32, output: String
    ) {
        let program = try Program(
            "canopyctl", arguments, environment: desktop.environment, input: input)
        let exitCode = try program.end()
        return (exitCode, program.output)
    }
}
