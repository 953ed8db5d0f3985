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
            #expect(owner.starting == Refusals.unlocking)
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
    }

    @Test("gnome-keyring's command, which would start one beside another service, is for it alone")
    func commands() {
        for process in ["kwalletd5", "kwalletd6", "ksecretd", "keepassxc", "oo7-daemon", ":1.7"] {
            let owner = KeyringOwner(process: process)
            let program = owner.name == "KeePassXC" ? "keepassxc" : "secret-tool search --unlock"
            #expect(owner.unlocking.hasPrefix(program), "\(process)")
            #expect(owner.starting == "canopyctl doctor", "\(process)")
        }
    }

    @Test(
        "A name that the kernel cut off is made whole by what the process was started with",
        arguments: [
            (
                "gnome-keyring-d", ["/usr/bin/gnome-keyring-daemon", "--foreground"],
                "gnome-keyring-daemon"
            ),
            ("gnome-keyring-d", [], "gnome-keyring-daemon"),
            ("gnome-keyring-d", ["gnome-keyring"], "gnome-keyring-daemon"),
            (
                "pass_secret_ser", ["/usr/bin/python3", "/bin/pass_secret_service"],
                "pass_secret_service"
            ),
            ("pass_secret_ser", ["sh", "-c", "pass_secret_service"], "pass_secret_ser"),
            ("fifteen_letters", ["/x/fifteen_letters"], "fifteen_letters"),
            ("kwalletd5", ["/usr/bin/kwalletd5-wrapper"], "kwalletd5"),
            ("pass_secret_ser", ["/"], "pass_secret_ser"),
        ] as [(String, [String], String)])
    func names(_ comm: String, _ words: [String], _ name: String) {
        #expect(KeyringOwner.processName(comm, startedWith: words) == name)
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
