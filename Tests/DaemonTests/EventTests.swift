import Foundation
import Testing

@Suite("Server-sent events", .timeLimit(.minutes(5)))
struct EventTests {
    @Test("A subscriber gets the present states, and then each change")
    func changes() throws {
        let stage = try Stage()
        try stage.logIn("default")
        try stage.logIn("work", as: .grace)
        let reader = try subscriber(of: stage)
        #expect(try reader.event().isState(of: "default", "active"))
        #expect(try reader.event().isState(of: "work", "active"))
        let token = try stage.goodToken().text("access_token")
        try stage.expectRotation("work")
        let rotated = try reader.event { $0.name == "rotated" }
        #expect(try rotated.data.text("profile") == "work")
        #expect(try rotated.data.number("generation") == 1)
        #expect(try reader.event { $0.name == "state" }.isState(of: "work", "active"))
        #expect(try stage.ask("POST", "/v1/profiles/default/logout").status == 204)
        let last = try reader.event { try $0.data.has("reason") }
        #expect(try last.isState(of: "default", "signin_required"))
        #expect(try last.data.text("reason") == "signed_out")
        #expect(!reader.seen.contains(token))
        #expect(!reader.seen.contains("access_token"))
    }

    @Test("Who asks for one profile hears of no other")
    func oneProfile() throws {
        let stage = try Stage()
        try stage.logIn("default")
        try stage.logIn("work", as: .grace)
        let reader = try subscriber(of: stage, "?profile=work")
        #expect(try reader.event().isState(of: "work", "active"))
        try stage.expectRotation("default")
        try stage.expectRotation("work")
        #expect(try reader.event { $0.name == "rotated" }.data.text("profile") == "work")
        #expect(!reader.seen.contains(#""profile":"default""#))
    }

    @Test("A connection without news gets a comment after a minute, and goes on")
    func keepAlive() throws {
        let daemon = try RunningDaemon()
        let client = try daemon.connect()
        client.wait(upTo: 100)
        try client.send("GET /v1/events HTTP/1.1\r\n\r\n")
        #expect(try client.answer(hasBody: false).status == 200)
        #expect(try client.text(upTo: "\n\n") == ": keep-alive\n\n")
        try daemon.connect().expectService()
    }

    @Test("F08: of what a reader has not taken the latest is kept; it is dropped in the end")
    func slowReader() throws {
        let stage = try Stage(lifetime: 10)
        try stage.logIn()
        let crowd = try stage.crowd(700)
        let readers = try (0..<100).map { _ in try subscriber(of: stage) }
        let quiet = try stage.daemon.anonymousMemory()
        // More than a socket holds: nobody is sent a change before it has read all this.
        for _ in 1...3 { try stage.expectRotation() }
        let generation = try stage.generation()
        #expect(try stage.daemon.anonymousMemory() < quiet + 8192)

        let slow = readers[0]
        var states: Set<String> = []
        for _ in 0...crowd { states.insert(try slow.event().data.text("profile")) }
        #expect(states.count == crowd + 1)
        let rotated = try slow.event { $0.name == "rotated" }
        #expect(try rotated.data.number("generation") >= generation)
        #expect(try slow.event { $0.name == "state" }.data.number("generation") >= generation)

        // The others never read, and end at the deadline for sending.
        try eventually(within: 60, "deaf subscribers are dropped") {
            try stage.ask("GET", "/v1/status").json.number("connections") <= 2
        }
        #expect(try stage.daemon.anonymousMemory() < quiet + 8192)
        _ = try stage.goodToken()
    }

    private func subscriber(of stage: Stage, _ query: String = "") throws -> Subscriber {
        let client = try stage.daemon.connect()
        try client.send("GET /v1/events\(query) HTTP/1.1\r\nAccept: text/event-stream\r\n\r\n")
        let answer = try client.answer(hasBody: false)
        try OpenAPIDocument.checked().expect(answer, to: "HEAD", "/v1/events")
        return Subscriber(client)
    }
}

/// Reads events, and sees to it that their ids increase and their data is what is described.
private final class Subscriber {
    private let client: RawClient
    private var lastID = 0
    private(set) var seen = ""

    struct Event {
        let name: String
        let data: JSONObject

        func isState(of profile: String, _ state: String) throws -> Bool {
            try name == "state" && data.text("profile") == profile && data.text("state") == state
        }
    }

    init(_ client: RawClient) {
        self.client = client
    }

    /// The next event that is as wanted.
    func event(where isWanted: (Event) throws -> Bool = { _ in true }) throws -> Event {
        while true {
            let event = try next()
            if try isWanted(event) { return event }
        }
    }

    private func next() throws -> Event {
        let text = try client.text(upTo: "\n\n")
        seen += text
        var fields: [Substring: String] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            fields[parts[0]] = String(parts[1].dropFirst())
        }
        let name = try #require(fields["event"])
        let id = try #require(fields["id"].flatMap { Int($0) })
        #expect(id > lastID)
        lastID = id
        let data = try #require(fields["data"])
        let schema = name == "rotated" ? "Rotated" : "Profile"
        #expect(try OpenAPIDocument.checked().faults(ofEventData: data, schema: schema).isEmpty)
        return Event(name: name, data: try JSONObject(data))
    }
}

extension Stage {
    /// Starts canopyd anew with so many more profiles, of which nothing is in the keyring; returns
    /// how many.
    fileprivate func crowd(_ count: Int) throws -> Int {
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
        try eventually("all are served") {
            try ask("GET", "/v1/profiles").json.objects("profiles")
                .allSatisfy { try $0.text("state") != "refreshing" }
        }
        return count
    }
}
