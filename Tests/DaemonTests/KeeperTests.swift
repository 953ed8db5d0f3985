import CLinux
import Foundation
import Glibc
import Testing

/// Section D of the faults that users of such daemons met: one keyring is not like another.
@Suite("One session, whoever keeps it", .timeLimit(.minutes(25)))
struct KeeperTests {
    /// A Secret Service, and for how long it makes a successor wait.
    enum Service: CaseIterable, CustomTestStringConvertible {
        case gnomeKeyring, specification, keePassXC, kWallet

        var testDescription: String { "\(self)" }

        var keyring: PrivateDesktop.Keyring {
            switch self {
            case .gnomeKeyring: .gnomeKeyring
            case .specification: .double()
            case .keePassXC: .double(.keePassXC, named: "keepassxc")
            case .kWallet: .double(.kWallet, named: "kwalletd5")
            }
        }
    }

    @Test(
        "D19: Stored, found, rewritten, kept apart and deleted, whatever the service is like",
        arguments: Service.allCases)
    func storage(_ service: Service) throws {
        let stage = try Stage(lifetime: 900, sandbox: ["--no-throttle"], keyring: service.keyring)
        // Names that a loose search takes for each other.
        try stage.logIn("work")
        try stage.logIn("work.2", as: .grace)
        try stage.logIn("work-", as: .grace)
        for (profile, email) in [("work", "ada"), ("work.2", "grace"), ("work-", "grace")] {
            let session = try #require(try stage.desktop.storedSession(profile))
            #expect(try session.number("generation") == 0)
            #expect(
                try stage.profile(profile).object("identity").text("email")
                    == "\(email)@example.com")
        }
        // Rewritten in place.
        try stage.expectRotation("work")
        let rotated = try #require(try stage.desktop.storedSession("work"))
        #expect(try rotated.number("generation") == 1)
        #expect(try stage.desktop.storedSession("work.2")?.number("generation") == 0)
        // Found again, by a canopyd that knows nothing else.
        let token = try stage.goodToken("work").text("access_token")
        try stage.killAndRestart()
        #expect(try stage.goodToken("work").text("access_token") == token)
        #expect(try stage.generation("work") == 1)
        // Replaced by another sign-in, and still one item.
        try stage.logIn("work")
        #expect(try stage.desktop.storedSession("work")?.number("generation") == 0)
        if let double = stage.desktop.double {
            #expect(try double.items(of: "work").count == 1)
        }
        // Deleted alone.
        #expect(try stage.ask("POST", "/v1/profiles/work/logout").status == 204)
        #expect(try stage.desktop.storedSession("work") == nil)
        #expect(try stage.desktop.storedSession("work.2") != nil)
        _ = try stage.goodToken("work.2")
        #expect(try stage.token("work").code == "unknown_profile")
        // KeePassXC makes an item by a prompt, and three were made.
        try stage.desktop.double?.expectNobodyAsked(forItems: service == .keePassXC ? 3 : 0)
        try stage.server.expectNoIncident()
    }

    @Test(
        "D19: Another machine's item is told from ours by every service", arguments: [true, false])
    func machines(_ isLoose: Bool) throws {
        // One that writes at once: what another has lost, the slot would bring back.
        let stage = try Stage(
            keyring: .double(
                isLoose ? .loose : .specification, named: "gnome-keyring-daemon"))
        try stage.logIn()
        let item = try #require(try stage.double.items().first)
        let machine = try item.attributes.text("machine")
        try stage.double.tell("forget", ["profile": "default"])
        try stage.double.tell(
            "add",
            [
                "collection": "login", "secret": item.secret,
                "attributes": [
                    "xdg:schema": "com.canopy-io.canopyd.session", "profile": "default",
                    // To whoever searches for parts, ours is in it.
                    "machine": machine + "0",
                ],
            ])
        #expect(try stage.refresh().json.text("reason") == "other_machine")
        #expect(try stage.server.refreshes() == 0)
        #expect(try stage.double.items().count == 1)
    }

    @Test("D18: Tokens of 64 KiB and more are stored, answered and handed to programs")
    func bigTokens() throws {
        let size = 64 << 10
        let stage = try Stage(sandbox: ["--token-bytes", "\(size)"])
        try stage.logIn()
        try stage.expectRotation()
        let token = try stage.goodToken().text("access_token")
        #expect(token.utf8.count >= size)
        try stage.killAndRestart()
        let isSame = try stage.goodToken().text("access_token") == token
        #expect(isSame)
        let printed = try stage.canopyctl("token")
        #expect(printed.exitCode == 0)
        let isWhole = printed.output == token + "\n"
        #expect(isWhole)
        try stage.expectRotation()
        try stage.server.expectNoIncident()
    }

    @Test("D18: A token of more than a MiB is an error, and no crash; the session stays")
    func tooBigToken() throws {
        let stage = try Stage(lifetime: 900, sandbox: ["--grace", "60"])
        try stage.logIn()
        let token = try stage.goodToken().text("access_token")
        try stage.server.plan("huge-body", #","count":0,"when":"after""#)
        try stage.daemon.connect().send(Stage.request("POST", "/v1/profiles/default/refresh"))
        try eventually("it is an error") { try stage.profile().has("last_error") }
        #expect(try stage.goodToken().text("access_token") == token)
        #expect(!stage.daemon.words.contains("signal"))
        try stage.server.heal()
        try eventually("the same token is sent again") { try stage.generation() == 1 }
        try stage.server.expectNoIncident()
    }

    @Test("A profile that only the keyring knows is found once it can be read")
    func foundLater() throws {
        for keyring in [PrivateDesktop.Keyring.gnomeKeyring, .double()] {
            let stage = try Stage(keyring: keyring)
            try stage.logIn("lost")
            try stage.killDaemon()
            try FileManager.default.removeItem(atPath: stage.desktop.directory.path + "/state")
            let keeper = stage.desktop.double == nil ? Keeper.gnomeKeyring : .double
            try keeper.restartLocked(stage)
            try stage.startDaemon()
            // Whether there is such a profile is not known.
            #expect(try stage.token("lost").code == "keyring_locked")
            #expect(try stage.token("never").code == "keyring_locked")
            try keeper.unlockSilently(stage)
            // Its state is gone, so that it is a copy; but it is known, and why.
            try eventually("it is found") {
                try stage.token("lost").code == "signin_required"
            }
            #expect(try stage.profile("lost").text("reason") == "restored_copy")
            #expect(try stage.token("never").code == "unknown_profile")
        }
    }

    @Test("A load that dies before it has searched leaves nothing unknown for good")
    func searchedAgain() throws {
        let stage = try Stage(keyring: .double())
        try stage.logIn("lost")
        try stage.killDaemon()
        try FileManager.default.removeItem(atPath: stage.desktop.directory.path + "/state")
        try stage.double.spoil("SearchItems", .late(3))
        try stage.startDaemon()
        let client = try stage.daemon.connect()
        try client.send(Stage.request("GET", "/v1/token?profile=lost"))
        try eventually("the keyring is searched") {
            try stage.double.calls().count("ReadAlias") > 0
        }
        for exchange in try stage.exchanges() { kill(exchange, SIGKILL) }
        #expect(Stage.Answer(try client.answer()).status == 503)
        try stage.double.heal()
        try eventually("it is found") { try stage.token("lost").code == "signin_required" }
    }
}
