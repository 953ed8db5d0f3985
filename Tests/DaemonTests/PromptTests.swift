import Foundation
import Glibc
import Testing

/// Section D of the faults that users of such daemons met: what is asked of a service that prompts for
/// each item, and how its prompts end.
///
/// With LeakSanitizer in the exchanges, also what they leave behind: nothing.
@Suite("A prompt for an item, refused or performed, ends", .timeLimit(.minutes(25)))
struct PromptTests {
    @Test("D01: A service that would ask for each item, and is not known for it, is not let")
    func refused() throws {
        let stage = try Stage(keyring: .double())
        try stage.logIn()
        try stage.double.reshape(["item_needs_prompt": true])
        let refused = try stage.tryLogin("other", as: .grace)
        #expect(refused.status == 423)
        #expect(try refused.code == "keyring_locked")
        // What is dead by record need not be gone.
        #expect(try stage.ask("POST", "/v1/profiles/default/logout").status == 204)
        #expect(try stage.token().code == "unknown_profile")
        let calls = try stage.double.calls()
        #expect(calls.count("CreateItem") > 1)
        #expect(calls.count("Delete") == 1)
        #expect(calls.prompted == 0)
        #expect(calls.count("Prompt") == 0)
        #expect(try stage.server.families().allSatisfy { try !$0.truth("alive") })
    }

    @Test("D19: A prompt that shows nothing, and does not end, is dismissed at its deadline")
    func endless() throws {
        let stage = try Stage(keyring: .double(.keePassXC, named: "keepassxc"))
        try stage.double.spoil("Prompt", .silence, times: 1)
        let refused = try stage.tryLogin()
        #expect(refused.status == 503)
        #expect(try refused.code == "keyring_unavailable")
        #expect(try refused.json.text("detail").contains("did not answer within 5 s"))
        let calls = try stage.double.calls()
        #expect(calls.count("Dismiss") == 1)
        #expect(calls.openPrompts == 0)
        #expect(try stage.double.items().isEmpty)
        try stage.logIn()
        #expect(try stage.double.items().count == 1)
    }

    @Test("D19: A service that ends amid its prompt is told as one that is gone")
    func ownerGone() throws {
        let stage = try Stage(keyring: .double(.keePassXC, named: "keepassxc"))
        try stage.double.spoil("Prompt", .silence)
        let client = try stage.daemon.connect()
        try client.send(
            Stage.request("POST", "/v1/profiles/default/login", stage.credentials()))
        try eventually("the item is prompted for") {
            try stage.double.calls().count("Prompt") > 0
        }
        try stage.double.die()
        let answer = Stage.Answer(try client.answer())
        #expect(answer.status == 503)
        #expect(try answer.code == "keyring_unavailable")
        // GLib's word for a call with nothing in place of an object.
        #expect(!stage.daemon.words.contains("CRITICAL"), "\(stage.daemon.words)")
    }
}
