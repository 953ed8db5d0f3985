internal import CLinux
internal import Glibc

/// Where the user's environment says that things are: the XDG base directories and what canopyd
/// and canopyctl derive from them, by one rule for both.
package struct Environment: Sendable {
    private let lookup: @Sendable (String) -> String?
    private let userID: UInt32

    /// The parent of every user's own runtime directory; another one in tests.
    private let runtimeRoot: String

    /// The environment and the user of this process.
    package static let process = Environment(
        userID: getuid(),
        lookup: { name in getenv(name).map { String(cString: $0) } })

    /// An environment that `lookup` answers for; `runtimeRoot` stands for `/run/user`.
    package init(
        userID: UInt32, runtimeRoot: String = "/run/user",
        lookup: @escaping @Sendable (String) -> String?
    ) {
        self.userID = userID
        self.runtimeRoot = runtimeRoot
        self.lookup = lookup
    }

    /// The value of a variable; one that is set to nothing counts as unset, as XDG has it.
    package subscript(name: String) -> String? {
        guard let value = lookup(name), !value.isEmpty else { return nil }
        return value
    }

    /// The path of the API socket: `$CANOPYD_SOCKET`, else `canopyd/agent.sock` in the runtime
    /// directory.
    package var agentSocketPath: String {
        get throws(Unusable) {
            if let path = self["CANOPYD_SOCKET"] { return path }
            return try runtimeDirectory + "/agent.sock"
        }
    }

    /// The path of the socket for systemd's `LoadCredential=`.
    package var credentialSocketPath: String {
        get throws(Unusable) { try runtimeDirectory + "/credential.sock" }
    }

    /// canopyd's own directory under `$XDG_RUNTIME_DIR`, else under `/run/user/UID` where that
    /// exists and is ours; nothing sees to it that `canopyd` in it exists.
    package var runtimeDirectory: String {
        get throws(Unusable) {
            if let path = absolute("XDG_RUNTIME_DIR") { return path + "/canopyd" }
            let path = "\(runtimeRoot)/\(userID)"
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw .noRuntimeDirectory(tried: path)
            }
            guard status.st_uid == userID else { throw .foreignRuntimeDirectory(tried: path) }
            return path + "/canopyd"
        }
    }

    /// canopyd's directory for state without secrets, under `$XDG_STATE_HOME`, else
    /// `~/.local/state`.
    package var stateDirectory: String {
        get throws(Unusable) {
            if let path = absolute("XDG_STATE_HOME") { return path + "/canopyd" }
            return try home + "/.local/state/canopyd"
        }
    }

    /// The configuration file, under `$XDG_CONFIG_HOME`, else `~/.config`.
    package var configurationFile: String {
        get throws(Unusable) {
            if let path = absolute("XDG_CONFIG_HOME") { return path + "/canopyd/canopyd.conf" }
            return try home + "/.config/canopyd/canopyd.conf"
        }
    }

    /// Where the session bus is: `$DBUS_SESSION_BUS_ADDRESS`, else the socket `bus` in the runtime
    /// directory, as every systemd user session has it.
    package var sessionBusAddress: String {
        if let address = self["DBUS_SESSION_BUS_ADDRESS"] { return address }
        let directory = absolute("XDG_RUNTIME_DIR") ?? "\(runtimeRoot)/\(userID)"
        return "unix:path=" + Environment.escaped(directory + "/bus")
    }

    /// Names the session bus to the libraries of this process.
    ///
    /// Without a name and with a display, GDBus would start a bus of its own, with nobody on it.
    package func nameSessionBus() {
        setenv("DBUS_SESSION_BUS_ADDRESS", sessionBusAddress, 1)
    }

    /// A value in a D-Bus address: what is not plain is written as `%` and two digits.
    private static func escaped(_ value: String) -> String {
        var text = ""
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "*"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text
    }

    private var home: String {
        get throws(Unusable) {
            guard let path = absolute("HOME") else { throw .noHome }
            return path
        }
    }

    /// The variable's path, without slashes at its end; a relative one is ignored, as XDG has it.
    private func absolute(_ name: String) -> String? {
        guard let value = self[name], value.utf8.first == UInt8(ascii: "/") else { return nil }
        var path = value.utf8[...]
        while path.last == UInt8(ascii: "/") { path.removeLast() }
        return String(Substring(path))
    }

    /// What the environment does not say, and nothing else can.
    package enum Unusable: Error, Equatable, CustomStringConvertible {
        case noRuntimeDirectory(tried: String)
        case foreignRuntimeDirectory(tried: String)
        case noHome

        package var description: String {
            switch self {
            case .noRuntimeDirectory(let path):
                return "XDG_RUNTIME_DIR is not set to an absolute path, and \(path) does not exist"
            case .foreignRuntimeDirectory(let path):
                return "XDG_RUNTIME_DIR is not set to an absolute path, and \(path) belongs to "
                    + "another user"
            case .noHome:
                return "HOME is not set to an absolute path"
            }
        }

        /// What the user can do about it.
        package var remedy: String {
            switch self {
            case .noRuntimeDirectory, .foreignRuntimeDirectory:
                return "log in with a session of your own (not su or sudo), or set XDG_RUNTIME_DIR "
                    + "to a directory that is yours alone"
            case .noHome:
                return "set HOME to your home directory"
            }
        }
    }
}
