import Foundation
import Glibc
import Testing

@Suite("Clocks that are wrong", .timeLimit(.minutes(25)))
struct ClockTests {
    @Test(
        "A clock that is hours or years off costs nothing: the server's Date corrects it",
        arguments: [-86_400 * 365, -5 * 3600, 5 * 3600, 86_400 * 365])
    func wrongClock(_ seconds: Int) throws {
        let stage = try Stage(lifetime: 4, sandbox: ["--clock", "\(seconds)"])
        try stage.logIn()
        for generation in 1...3 {
            try eventually("rotation \(generation)") { try stage.generation() >= generation }
            let token = try stage.goodToken()
            #expect(try (0...4).contains(token.number("expires_in")))
        }
        try stage.killAndRestart()
        _ = try stage.goodToken()
        // A wait until a date is counted on the server's clock, too.
        try stage.server.plan("status-429", #","retry_after":"date:60""#)
        try eventually("the server has said to wait") { try stage.refresh().status == 429 }
        #expect(try (50...67).contains(stage.refresh().json.number("retry_after")))
        try stage.server.expectNoIncident()
    }

    @Test("A clock that is set while it runs costs nothing either")
    func steppedClock() throws {
        let stage = try Stage(lifetime: 4, sandbox: ["--clock", "-18000"])
        try stage.logIn()
        try eventually("a rotation") { try stage.generation() >= 1 }
        for _ in 1...2 {
            // What is a step of ours to us is one of the server's to it.
            try stage.server.advance(by: 5 * 3600)
            let before = try stage.generation()
            _ = try stage.goodToken()
            try eventually("a rotation after the step") { try stage.generation() > before }
            _ = try stage.goodToken()
        }
        try stage.server.expectNoIncident()
    }

    @Test("What an interim answer and trailers say of the time, and of waiting, is nobody's word")
    func strayHeaders() throws {
        let stage = try Stage(lifetime: 60, sandbox: ["--stray-headers"])
        try stage.logIn()
        for _ in 1...2 {
            try stage.expectRotation()
            // By the clock of a year ahead it would be over.
            #expect(try (30...60).contains(stage.goodToken().number("expires_in")))
        }
        try stage.server.plan("status-429", #","retry_after":"date:40""#)
        try eventually("the server has said to wait") { try stage.refresh().status == 429 }
        #expect(try (20...45).contains(stage.refresh().json.number("retry_after")))
        try stage.logIn("other", as: .grace)
        try stage.server.plan("status-429", #","identity":"\#(SandboxServer.Person.grace.email)""#)
        let refused = try stage.refresh("other")
        #expect(refused.status == 429)
        // Backed off from, as the server did not say for how long.
        #expect(try refused.json.number("retry_after") < 30)
        try stage.server.expectNoIncident()
    }

    @Test("C05: locks and files from the future, left by nobody, hold nothing up")
    func fromTheFuture() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.expectRotation()
        try stage.killDaemon()
        let future = Date(timeIntervalSinceNow: 4 * 3600)
        var touched: [String] = []
        for root in ["/state/canopyd", "/canopyd"] {
            let path = stage.desktop.directory.path + root
            for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
                try FileManager.default.setAttributes(
                    [.modificationDate: future], ofItemAtPath: path + "/" + name)
                touched.append(name)
            }
        }
        #expect(touched.contains { $0.hasSuffix("default.lock") })
        #expect(touched.contains { $0.hasSuffix("default.json") })
        try stage.startDaemon()
        #expect(try stage.goodToken().number("generation") == 1)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }
}
