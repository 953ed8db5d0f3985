import Foundation
import Glibc
import Testing

@Suite(
    "A path that swallows packets", .timeLimit(.minutes(25)),
    .enabled(if: PrivateNetwork.isAllowed, "the kernel grants no network namespace"))
struct BlackHoleTests {
    /// From the request to the same one again: ROTATION's 5 s for knowing that the path is dead, the
    /// first pause, and room.
    private static let patience = 8.0

    @Test(
        "A05: a reply or a request that vanishes is asked for again within 8 s; who is slow is waited for"
    )
    func vanishing() throws {
        let person = SandboxServer.Person(
            email: "user1@example.com", password: "password of user1")
        try PrivateNetwork.with { network in
            let stage = try Stage(sandbox: ["--grace", "60", "--identities", "1"])
            try stage.logIn("deaf", as: .ada)
            try stage.logIn("slow", as: .grace)
            try stage.logIn("mute", as: person)
            // Silent for longer than any dead path is borne with, and alive all the while.
            try stage.server.plan(
                "slow", #","delay_ms":25000,"identity":"\#(SandboxServer.Person.grace.email)""#)
            let slow = try stage.daemon.connect()
            try slow.send(Stage.request("POST", "/v1/profiles/slow/refresh?timeout=100"))
            try eventually("the slow request has arrived") {
                try requests(stage, .grace) == 1
            }
            try expectReplyAskedForAgain(stage, network)
            try expectRequestSentAgain(stage, network, person)

            let answer = Stage.Answer(try slow.answer())
            #expect(answer.status == 200)
            #expect(try answer.json.number("generation") == 1)
            #expect(try requests(stage, .grace) == 1)
            try stage.server.expectNoIncident()
        }
    }

    /// The server has rotated, and its answer never arrives.
    private func expectReplyAskedForAgain(_ stage: Stage, _ network: PrivateNetwork) throws {
        try stage.server.plan("hold", #","identity":"\#(SandboxServer.Person.ada.email)""#)
        let client = try stage.daemon.connect()
        let others = try network.clients(of: stage.server.port)
        try client.send(Stage.request("POST", "/v1/profiles/deaf/refresh?timeout=60"))
        try eventually("the server holds its answer back") { try stage.server.held() == 1 }
        let port = try network.client(of: stage.server.port, beside: others)
        try network.drop("tcp sport \(stage.server.port) tcp dport \(port)")
        try stage.server.release()
        try eventually(within: Self.patience, "it is asked for again") {
            try requests(stage, .ada) == 2
        }
        let answer = Stage.Answer(try client.answer())
        #expect(try answer.json.number("generation") == 1)
        #expect(try family(stage, .ada).number("harmless_retries") == 1)
    }

    /// The connection stands, and the request never arrives.
    private func expectRequestSentAgain(
        _ stage: Stage, _ network: PrivateNetwork, _ person: SandboxServer.Person
    ) throws {
        let client = try stage.daemon.connect()
        let others = try network.clients(of: stage.server.port)
        try network.drop("tcp dport \(stage.server.port) tcp flags & psh == psh")
        try client.send(Stage.request("POST", "/v1/profiles/mute/refresh?timeout=60"))
        let port = try network.client(of: stage.server.port, beside: others)
        // From here on it is this connection alone: the next one is to get through.
        try network.drop("tcp dport \(stage.server.port) tcp sport \(port)")
        try eventually(within: Self.patience, "it is sent again") {
            try requests(stage, person) == 1
        }
        let answer = Stage.Answer(try client.answer())
        #expect(try answer.json.number("generation") == 1)
        #expect(try family(stage, person).number("harmless_retries") == 0)
    }

    private func requests(_ stage: Stage, _ person: SandboxServer.Person) throws -> Int {
        try family(stage, person).number("requests_arrived")
    }

    private func family(
        _ stage: Stage, _ person: SandboxServer.Person
    ) throws -> JSONObject {
        try #require(
            try stage.server.families().first { try $0.text("email") == person.email })
    }
}
