import CLinux
import Foundation
import Glibc
import Testing

/// The Secret Service of `Tests/MockSecretService`: a process that does as a test tells it.
final class MockSecretService {
    private let program: Program
    private let conversation: FileHandle
    private var received = Data()

    /// What a real service could be, as names and values of the script's `Shape`.
    ///
    /// None is what gnome-keyring is like.
    struct Shape: Sendable {
        var members: [String: any Sendable] = [:]

        static let specification = Shape()

        /// Nothing of a locked database is seen, items bring attributes of their own, and are made
        /// by a prompt that shows nothing.
        static let keePassXC = Shape(members: ["like": "keepassxc"])

        /// Shows nothing before it was unlocked, and writes late.
        static let kWallet = Shape(members: ["like": "kwalletd5"])

        /// As KeePassXC did before 2.7.2: values are searched for loosely.
        static let loose = Shape(members: [
            "loose_search": true, "extra_attributes": ["Path": "/canopy", "Notes": ""],
        ])
    }

    /// Takes the name, and offers one unlocked collection, `login`, which is the default.
    ///
    /// It runs under the name that says to canopyd who writes at once: gnome-keyring does.
    init(environment: [String: String], _ shape: Shape = .specification, named name: String? = nil)
        throws
    {
        var pair: [Int32] = [-1, -1]
        try #require(
            socketpair(
                AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &pair) == 0)
        conversation = FileHandle(fileDescriptor: pair[0], closeOnDealloc: true)
        var patience = timeval(tv_sec: 60 * Sanitizer.slowness, tv_usec: 0)
        setsockopt(
            pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        defer { close(pair[1]) }
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("MockSecretService/mock-secret-service").path
        program = try Program(
            script, name.map { [$0] } ?? [], environment: environment, talkingOver: pair[1])
        _ = try answer()
        try reshape(shape.members)
    }

    /// Sends a command of the script's `Control`.
    @discardableResult
    func tell(_ command: String, _ members: [String: Any?] = [:]) throws -> JSONObject {
        var message = members.compactMapValues { $0 }
        message["do"] = command
        var line = try JSONSerialization.data(withJSONObject: message)
        line.append(UInt8(ascii: "\n"))
        try conversation.write(contentsOf: line)
        let answer = try answer()
        if answer.has("error") {
            Issue.record("mock-secret-service: \(command): \(try answer.text("error"))")
        }
        return answer
    }

    private func answer() throws -> JSONObject {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: received[..<end], as: UTF8.self)
                received = Data(received[(end + 1)...])
                return try JSONObject(line)
            }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(conversation.fileDescriptor, &buffer, buffer.count, 0)
            try #require(count > 0, "mock-secret-service does not answer: \(program.output)")
            received.append(contentsOf: buffer[..<count])
        }
    }

    // MARK: Commands

    func reshape(_ members: [String: Any]) throws { try tell("shape", members) }

    /// What a call is answered with.
    enum Fault {
        case error(String)
        /// Never, though the caller waits.
        case silence
        /// As it should be, so many seconds late.
        case late(Double)
    }

    /// Spoils a call, or (`*`) every one, until it is healed.
    ///
    /// `after` calls of its kind go well before, `times` are spoilt; `profile` limits it to calls
    /// on that profile's item; `isDone` does what was asked and says otherwise.
    func spoil(
        _ call: String, _ fault: Fault, after skip: Int = 0, times: Int = -1,
        of profile: String? = nil, isDone: Bool = false
    ) throws {
        var members: [String: Any?] = [
            "call": call, "skip": skip, "times": times, "profile": profile,
            "then": isDone ? "done" : "",
        ]
        switch fault {
        case .error(let name): members["error"] = name
        case .silence: break
        case .late(let seconds): members["delay"] = seconds
        }
        try tell("fault", members)
    }

    func heal() throws { try tell("heal") }

    func lock(_ collection: String = "login", silently: Bool = false) throws {
        try tell("lock", ["collection": collection, "silently": silently])
    }

    func unlock(_ collection: String = "login", silently: Bool = false) throws {
        try tell("unlock", ["collection": collection, "silently": silently])
    }

    /// A collection that is there from now on; the alias, if any, leads to it.
    func addCollection(_ name: String, alias: String? = nil) throws {
        try tell("collection", ["name": name, "alias": alias])
    }

    /// Puts a profile's item into another collection.
    func move(_ profile: String = "default", to collection: String) throws {
        try tell("move", ["profile": profile, "collection": collection])
    }

    /// Ends, as the bus sees it; after a crash only what was written is left.
    func leave(crash: Bool = false) throws { try tell("leave", ["crash": crash]) }

    /// Dies, and with it its connection to the bus and all that it held.
    func die() throws { try program.end(by: SIGKILL) }

    /// Starts again, as the bus sees it.
    func come(locked: Bool = false) throws { try tell("come", ["locked": locked]) }

    // MARK: What it saw

    /// An item as it holds it, locked or not.
    struct Item {
        let path: String
        let attributes: JSONObject
        let secret: String
    }

    func items(of profile: String = "default") throws -> [Item] {
        try tell("items", ["profile": profile]).objects("items").map {
            Item(
                path: try $0.text("path"), attributes: try $0.object("attributes"),
                secret: try $0.text("secret"))
        }
    }

    /// Puts something else into a profile's item, behind everybody's back.
    func put(_ secret: String, into profile: String = "default") throws {
        try tell("put", ["profile": profile, "secret": secret])
    }

    /// What was asked of it since the last look.
    struct Calls {
        let names: [String]
        /// The connections that asked for a session, in turn.
        let sessionOwners: [String]
        /// How often a prompt was shown, ever, that shows something.
        let prompted: Int
        /// Prompts that wait to be shown, or shown ones to be answered.
        let openPrompts: Int
        /// Calls of one client that waited for their answer at once, at the most.
        let mostWaiting: Int

        func count(_ name: String) -> Int { names.count { $0 == name } }
    }

    func calls() throws -> Calls {
        let answer = try tell("calls")
        let calls = try answer.objects("calls")
        return Calls(
            names: try calls.map { try $0.text("call") },
            sessionOwners: try calls.filter { try $0.text("call") == "OpenSession" }
                .map { try $0.text("sender") },
            prompted: try answer.number("prompted"), openPrompts: try answer.number("prompts"),
            mostWaiting: try answer.number("most_waiting"))
    }

    /// Nobody was ever asked anything, and nothing made that a person would have to be asked for.
    ///
    /// Prompts that others raised are counted too: a test that raises one does not ask. `forItems`
    /// are as many as may have been raised that show nothing.
    func expectNobodyAsked(
        forItems: Int = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let calls = try calls()
        #expect(calls.prompted == 0, "a prompt was shown", sourceLocation: sourceLocation)
        #expect(calls.count("Prompt") == forItems, sourceLocation: sourceLocation)
        for call in ["Dismiss", "CreateCollection"] {
            #expect(calls.count(call) == 0, "\(call) was called", sourceLocation: sourceLocation)
        }
    }
}
