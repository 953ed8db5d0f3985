import Foundation
import Testing

@Suite("Server-sent events", .timeLimit(.minutes(25)))
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
        let last = try reader.event { $0.data.has("reason") }
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

    @Test("F08: of what a reader has not taken the latest is kept, and readers share it")
    func slowReader() throws {
        let stage = try Stage(lifetime: 10)
        try stage.logIn()
        let crowd = try stage.crowd(1000)
        let quiet = try stage.daemon.anonymousMemory()
        // A sanitizer measures no memory, and who reads nothing for 30 s is let go.
        let readers = try (0..<(Sanitizer.isOn ? 10 : 100)).map { _ in
            try subscriber(of: stage)
        }
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
        _ = try stage.goodToken()
    }

    @Test("F06, F08: what is not whole by its deadline ends, however it is drawn out; news go on")
    func deadlines() throws {
        let stage = try Stage()
        try stage.logIn()
        let crowd = try stage.crowd(1000)
        let quiet = try stage.daemon.anonymousMemory()
        var ended: [RawClient] = []
        for start in [
            "\r\n", "GET /v1/token HTTP/1.1\r\nX: y",
            "POST /v1/profiles/p/login HTTP/1.1\r\nContent-Length: 9\r\n\r\n1234",
            "GET /v1/status HTTP/1.1\r\nContent-Length: 9\r\n\r\n1234",
        ] {
            for _ in 0..<125 {
                // The sign-ins are 64 at a time; what is refused has another test.
                if start.contains("login"), ended.count >= 250 + 60 { break }
                ended.append(try stage.daemon.connect())
                try ended.last?.send(start)
            }
        }
        let dripping = Array(ended[125..<135])
        for _ in 0..<20 {
            ended.append(try stage.daemon.connect())
            // Nobody reads what this many ask for, and then nobody reads what they ask.
            _ = ended.last?.sendInBackground(
                String(repeating: "GET /v1/profiles HTTP/1.1\r\n\r\n", count: 100))
            ended.append(try stage.daemon.connect())
            try ended.last?.send("GET /v1/events HTTP/1.1\r\n\r\n")
        }
        let quietReader = try stage.daemon.connect()
        quietReader.wait(upTo: 100)
        try quietReader.send("GET /v1/events?profile=p1 HTTP/1.1\r\n\r\n")
        #expect(try quietReader.answer(hasBody: false).status == 200)
        _ = try quietReader.text(upTo: "\n\n")
        #expect(try stage.connections() == ended.count + 2)

        var rounds = 0
        try eventually(within: 90, "all but the quiet reader are closed") {
            // A byte now and then does not buy more time.
            if rounds.isMultiple(of: 100) { for client in dripping { client.sendIfPossible("z") } }
            rounds += 1
            _ = try stage.goodToken()
            return try stage.connections() == 2
        }
        #expect(crowd == 1000)
        #expect(try stage.daemon.anonymousMemory() < quiet + 8192)
        #expect(try quietReader.text(upTo: "\n\n") == ": keep-alive\n\n")
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
    fileprivate func connections() throws -> Int {
        try ask("GET", "/v1/status").json.number("connections")
    }
}
