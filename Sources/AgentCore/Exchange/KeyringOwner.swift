/// A program that keeps secrets: what is known of it, by the name of its process.
package struct KeyringOwner: Equatable, Sendable {
    /// For people.
    package let name: String

    /// Whether what is stored is written when the store returns.
    package let writesAtOnce: Bool

    /// Whether it makes and deletes an item only by a prompt, which shows nothing while the collection is
    /// open; one for a deletion may show a question.
    package let asksForEachItem: Bool

    /// What it does not do, and what canopyd does about it, in a sentence; nil for nothing.
    package let limit: String?

    /// The command that unlocks it, or shows the window that does.
    package let unlocking: String

    /// The command that brings it back where it does not answer.
    package let starting: String

    /// Has the owner, whoever it is, raise the prompt that canopyd raises none of; a KWallet that is
    /// open shows nothing.
    private static let prompting =
        "secret-tool search --unlock xdg:schema com.canopy-io.canopyd.session"

    /// The whole name of a process of which the kernel keeps ``Limits/processNameBytes`` (`comm`).
    ///
    /// `words` are what it was started with: the program's path, or an interpreter's and its script's.
    package static func processName(_ comm: String, startedWith words: [String]) -> String {
        guard comm.utf8.count >= Limits.processNameBytes else { return comm }
        for word in words.prefix(2) {
            let name = word.split(separator: "/").last ?? ""
            if name.hasPrefix(comm) { return String(name) }
        }
        return comm == "gnome-keyring-d" ? "gnome-keyring-daemon" : comm
    }

    /// What is known of the process by its name, whole or cut off.
    package init(process: String) {
        let kept = "\(RotationTiming.lateStoreHold.wholeSeconds) s"
        switch process {
        case let name where name.hasPrefix("gnome-keyring"):
            self.init(
                name: "gnome-keyring", writesAtOnce: true, limit: nil,
                unlocking: Refusals.unlocking, starting: Refusals.unlocking)
        case "kwalletd5", "kwalletd6", "ksecretd":
            self.init(
                name: "KWallet", writesAtOnce: false,
                limit: "KWallet writes 5 s after it says so, and after a login it counts as locked "
                    + "until a program has asked for it: canopyd keeps for \(kept) what it stored, and "
                    + "asks for nothing",
                unlocking: KeyringOwner.prompting)
        case "keepassxc":
            self.init(
                name: "KeePassXC", writesAtOnce: false, asksForEachItem: true,
                limit: "KeePassXC writes a moment after it says so, and asks before an entry is "
                    + "deleted: canopyd keeps for \(kept) what it stored, and empties entries that it "
                    + "has no use for",
                unlocking: "keepassxc  # and unlock the database in its window")
        default:
            self.init(
                name: process, writesAtOnce: false,
                limit: "\(process) is not known to canopyd, and taken for one that writes seconds "
                    + "after it says so: canopyd keeps for \(kept) what it stored",
                unlocking: KeyringOwner.prompting)
        }
    }

    private init(
        name: String, writesAtOnce: Bool, asksForEachItem: Bool = false, limit: String?,
        unlocking: String, starting: String = "canopyctl doctor"
    ) {
        self.name = name
        self.writesAtOnce = writesAtOnce
        self.asksForEachItem = asksForEachItem
        self.limit = limit
        self.unlocking = unlocking
        self.starting = starting
    }

    /// Why sessions cannot be kept where libsecret is told to use another back end; nil where it is not.
    ///
    /// libsecret's file is for its simple calls alone, which cannot tell what is locked from what is not
    /// there: canopyd would go on with the Secret Service, where nobody who set this looks for it.
    package static func refusal(ofBackEnd value: String?) -> Failure? {
        guard let value, !value.isEmpty, value != "service" else { return nil }
        return Failure(
            .keyringUnavailable,
            "SECRET_BACKEND asks for another back end of libsecret than the Secret Service, which "
                + "alone canopyd keeps sessions in: unset it for canopyd", remedy: .secretService)
    }

    /// What mends it: for the user's service manager, which hands it to canopyd.
    package static let backEndFix =
        "systemctl --user unset-environment SECRET_BACKEND && systemctl --user restart canopyd"
}
