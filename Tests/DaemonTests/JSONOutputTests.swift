import AgentCore
import Foundation
import Glibc
import Testing

@Suite("canopyctl's --json is what its schemas say", .timeLimit(.minutes(25)))
struct JSONOutputTests {
    @Test("Every command with --json prints one object of its schema, and nothing besides")
    func objects() throws {
        let stage = try Stage()
        let ada = SandboxServer.Person.ada
        try expect(
            "Profile",
            stage.canopyctl(
                "login", "--json", "--url", stage.server.url, "--key", stage.server.nativeKey,
                "--email", ada.email, "--password-stdin", input: ada.password + "\n"))
        for (command, schema) in [
            ("token", "Token"), ("refresh", "Token"), ("status", "Status"),
            ("profiles", "Profiles"), ("whoami", "Person"), ("sessions", "Sessions"),
        ] {
            try expect(schema, stage.canopyctl(command, "--json"))
        }
        // On a machine without much of what it looks for: it is the form that counts.
        let doctor = try stage.canopyctl("doctor", "--json")
        try expect("Findings", (exitCode: 0, output: doctor.output))
        #expect(
            try OpenAPIDocument.checked().checks == Set(Finding.Check.allCases.map(\.rawValue)))
    }

    @Test("No command has --json but those")
    func all() throws {
        let stage = try Stage()
        let help = try stage.canopyctl("--help").output
        let commands = help.matches(of: #/(?m)^  ([a-z-]+)  /#).map { String($0.1) }
        #expect(commands.count > 15)
        let speaking = try commands.filter {
            try stage.canopyctl($0, "--help").output.contains("-j, --json ")
        }
        #expect(
            Set(speaking) == [
                "login", "token", "refresh", "status", "profiles", "whoami", "sessions", "watch",
                "doctor",
            ])
    }

    @Test("watch prints an object a line, each with an event and its data")
    func watch() throws {
        let stage = try Stage()
        try stage.logIn(as: .ada)
        let watch = try Program(
            "canopyctl", ["watch", "--json"], environment: stage.desktop.environment)
        try eventually("a state") { watch.output.contains("\n") }
        try stage.expectRotation()
        try eventually("a rotation") { watch.output.contains(#""event":"rotated""#) }
        for line in watch.output.split(separator: "\n") {
            let event = try JSONObject(String(line))
            let name = try event.text("event")
            let schema = try #require(["state": "Profile", "rotated": "Rotated"][name])
            let data = line.dropFirst(#"{"event":"","data":"#.count + name.count).dropLast()
            let faults = try OpenAPIDocument.checked().faults(
                ofEventData: String(data), schema: schema)
            #expect(faults.isEmpty)
        }
    }

    private func expect(
        _ schema: String, _ run: (exitCode: Int32, output: String),
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(run.exitCode == 0, sourceLocation: sourceLocation)
        #expect(run.output.hasSuffix("}\n"), sourceLocation: sourceLocation)
        let faults = try OpenAPIDocument.checked().faults(ofEventData: run.output, schema: schema)
        #expect(faults.isEmpty, "\(schema)", sourceLocation: sourceLocation)
    }
}
