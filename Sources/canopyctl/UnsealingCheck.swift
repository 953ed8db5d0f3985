internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Which way the keyring's passphrase takes on a machine that opens it by itself.
///
/// There is one: the system's manager unseals it. A unit of the user's own cannot
/// (`LoadCredentialEncrypted=` fails there up to systemd 257), and so is not asked to.
enum UnsealingCheck {
    static var finding: Finding {
        guard isSetUp else {
            return Finding(
                .unsealing, .skipped,
                "the keyring is opened by who logs in; canopyctl setup-headless has it open itself")
        }
        let uid = getuid()
        let unit = "canopyd-keyring@\(uid).service"
        guard access("/run/canopyd-keyring-\(uid)/passphrase", R_OK) == 0 else {
            return Finding(
                .unsealing, .failed,
                "the system's \(unit) has not unsealed the keyring's passphrase, and the keyring "
                    + "stays locked after a boot",
                fix: "sudo systemctl restart \(unit) && systemctl --user restart "
                    + "gnome-keyring-daemon.service")
        }
        return Finding(
            .unsealing, .ok, "the system's \(unit) has unsealed the keyring's passphrase")
    }

    /// Whether the user's part of `canopyctl setup-headless` was done.
    private static var isSetUp: Bool {
        let environment = Environment.process
        let configuration: String
        if let named = environment["XDG_CONFIG_HOME"], named.hasPrefix("/") {
            configuration = named
        } else if let home = environment["HOME"] {
            configuration = home + "/.config"
        } else {
            return false
        }
        return access(
            configuration + "/systemd/user/" + HeadlessFile.keyringDropIn.path, F_OK) == 0
    }
}
