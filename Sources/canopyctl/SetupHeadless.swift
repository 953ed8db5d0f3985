internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Makes a machine open its keyring and serve tokens with nobody there.
enum SetupHeadless: Command {
    static let name = "setup-headless"
    static let summary = "have the keyring unlock itself at boot, on a machine without a desktop"
    static let remarks = """
        Without --apply it prints what it would do, and does nothing: a script in two parts, of
        which the first is root's. With --apply it does one of them: root's as root, for --user,
        and the user's as that user. --undo takes either back.
        """
    static let options: Options = [.user, .apply, .undo, .sealWith, .passphraseFromInput]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let isRoot = getuid() == 0
        let undoes = arguments[flag: .undo]
        let seal = try seal(arguments)
        guard arguments[flag: .apply] else {
            let user = try user(arguments) ?? environmentUser
            try StandardOutput.print(
                undoes
                    ? HeadlessScript.undoneUser + "\n\n" + HeadlessScript.undoneRoot(user: user)
                    : HeadlessScript.root(
                        user: user, seal: seal,
                        takesPassphrase: arguments[flag: .passphraseFromInput]) + "\n\n"
                        + HeadlessScript.user)
            return .done
        }
        guard isRoot else {
            for option in [Option.user, .sealWith, .passphraseFromInput]
            where arguments[flag: option] {
                throw arguments.usage("--\(option.name) is for root's part: run it with sudo")
            }
            throw execute(undoes ? HeadlessScript.undoneUser : HeadlessScript.user)
        }
        guard let user = try user(arguments) else {
            throw arguments.usage("root's part needs --user: whose keyring is to unlock itself")
        }
        throw execute(
            undoes
                ? HeadlessScript.undoneRoot(user: user)
                : HeadlessScript.root(
                    user: user, seal: seal, takesPassphrase: arguments[flag: .passphraseFromInput]))
    }

    private static func seal(_ arguments: Arguments) throws(Complaint) -> HeadlessScript.Seal {
        guard let text = arguments[.sealWith] else { return .host }
        guard let seal = HeadlessScript.Seal(rawValue: text) else {
            throw arguments.usage("--seal-with takes host, tpm2 or host+tpm2, not: \(text)")
        }
        return seal
    }

    /// The user that was named; nil without one.
    private static func user(_ arguments: Arguments) throws(Complaint) -> String? {
        guard let name = arguments[.user] else { return nil }
        // It goes into a script of root's, quoted; what no user is called goes nowhere.
        guard isName(name) else { throw arguments.usage("--user takes the name of a user") }
        return name
    }

    private static var environmentUser: String {
        getenv("USER").map { String(cString: $0) }.flatMap { isName($0) ? $0 : nil } ?? "USER"
    }

    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && !text.hasPrefix("-") && text.utf8.allSatisfy { $0 > 0x20 }
    }

    /// Becomes a shell that runs the script; returns only if that fails.
    private static func execute(_ script: String) -> Complaint {
        let words = ["/bin/sh", "-c", script]
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        execv("/bin/sh", &arguments)
        return Complaint(.failure, "\(SystemError.last("execv", "/bin/sh"))")
    }
}
