import AgentCore
import Testing

@Suite("Who keeps the secrets")
struct KeyringOwnerTests {
    @Test("gnome-keyring alone writes at once, under the name that the kernel leaves of it")
    func atOnce() {
        for process in ["gnome-keyring-d", "gnome-keyring-daemon"] {
            let owner = KeyringOwner(process: process)
            #expect(owner.name == "gnome-keyring" && owner.writesAtOnce && owner.limit == nil)
            #expect(!owner.asksForEachItem && owner.unlocking == Refusals.unlocking)
        }
        for process in ["kwalletd5", "kwalletd6", "ksecretd", "keepassxc", "oo7-daemon", ":1.7"] {
            #expect(!KeyringOwner(process: process).writesAtOnce)
        }
    }

    @Test("What a service does not do is said by its name, and an unknown one is named")
    func limits() {
        #expect(KeyringOwner(process: "kwalletd6").limit?.contains("KWallet writes 5 s") == true)
        #expect(KeyringOwner(process: "keepassxc").asksForEachItem)
        let unknown = KeyringOwner(process: "oo7-daemon")
        #expect(unknown.name == "oo7-daemon" && !unknown.asksForEachItem)
        #expect(unknown.limit?.hasPrefix("oo7-daemon is not known to canopyd") == true)
        // A command for gnome-keyring would start it beside the one that is there.
        #expect(KeyringOwner(process: "kwalletd5").unlocking?.hasPrefix("secret-tool") == true)
        #expect(unknown.unlocking == nil)
    }

    @Test("Another back end of libsecret is refused in words, and the Secret Service is not")
    func backEnd() {
        for value in [nil, "", "service"] as [String?] {
            #expect(KeyringOwner.refusal(ofBackEnd: value) == nil)
        }
        for value in ["file", "portal", "Service"] {
            let failure = KeyringOwner.refusal(ofBackEnd: value)
            #expect(failure?.kind == .keyringUnavailable)
            #expect(failure?.detail.hasPrefix("SECRET_BACKEND asks for another back end") == true)
        }
    }
}
