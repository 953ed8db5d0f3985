import CLinux
import Foundation
import Glibc
import Testing

/// A session bus and a Secret Service of a test's own, with control over both.
final class PrivateDesktop {
    let directory: TestDirectory
    private var bus: Program?
    private var keyring: Program?

    /// The double, where it keeps the secrets.
    private(set) var double: MockSecretService?

    /// Who keeps the secrets.
    enum Keyring {
        case gnomeKeyring
        /// The double, in a shape, under its own name or that of another program.
        case double(MockSecretService.Shape = .specification, named: String? = nil)
        case nobody
    }

    private static let password = "the keyring's own password"
    private static let daemons = "/usr/bin/"

    init(_ keyring: Keyring = .gnomeKeyring) throws {
        directory = try TestDirectory()
        for name in ["data", "keyring", "home"] {
            try #require(mkdir(directory.path + "/" + name, 0o700) == 0)
        }
        try startBus()
        switch keyring {
        case .gnomeKeyring: try startKeyring()
        case .double(let shape, let name):
            double = try MockSecretService(environment: environment, shape, named: name)
        case .nobody: break
        }
    }

    /// An exchange whose canopyd a test killed goes on for as long as it has something to store.
    deinit {
        let mark = Data("XDG_RUNTIME_DIR=\(directory.path)\0".utf8)
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for process in processes.compactMap(pid_t.init) {
            guard
                let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8),
                name.hasPrefix("canopyd-exchang"),
                let environment = FileManager.default.contents(atPath: "/proc/\(process)/environ"),
                environment.range(of: mark) != nil
            else { continue }
            kill(process, SIGKILL)
        }
    }

    /// What leads programs here and nowhere else.
    var environment: [String: String] {
        [
            "HOME": directory.path + "/home", "XDG_RUNTIME_DIR": directory.path,
            "XDG_DATA_HOME": directory.path + "/data", "XDG_STATE_HOME": directory.path + "/state",
            "XDG_CONFIG_HOME": directory.path + "/conf", "XDG_DATA_DIRS": "/usr/share",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(directory.path)/bus",
            // Not there, unless a test makes one.
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(directory.path)/system-bus",
        ].merging(Sanitizer.environment) { $1 }
    }

    /// Where gnome-keyring keeps what it holds.
    var keyringDirectory: String { directory.path + "/data/keyrings" }

    /// The files of the state directory, but for locks, which hold nothing.
    func stateFiles() throws -> [String] {
        let root = directory.path + "/state/canopyd"
        return try FileManager.default.subpathsOfDirectory(atPath: root)
            .filter { $0.hasSuffix(".json") }.sorted().map { root + "/" + $0 }
    }

    /// The marks of a profile, by sign-in: what may have been presented.
    func marks(of profile: String = "default") throws -> [String: Int] {
        let path = try #require(
            try stateFiles().first { $0.hasSuffix("/\(profile).json") }, "no state of \(profile)")
        let file = try JSONSerialization.jsonObject(
            with: Data(contentsOf: URL(fileURLWithPath: path)))
        return try #require((file as? [String: Any])?["marks"] as? [String: Int])
    }

    // MARK: The bus

    func startBus(startingKeyringWith program: String? = nil) throws {
        bus = try startBus(at: "bus", startingKeyringWith: program)
    }

    /// Without service directories: nothing is ever started by the bus, so nothing can prompt; unless
    /// `program` is what it starts for whoever wants the Secret Service, and waits a second for.
    func startBus(at name: String, startingKeyringWith program: String? = nil) throws -> Program {
        if let program {
            try directory.write(
                "[D-BUS Service]\nName=org.freedesktop.secrets\nExec=\(program)\n",
                "services/org.freedesktop.secrets.service")
        }
        unlink(directory.path + "/" + name)
        try directory.write(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>session</type><keep_umask/>
            <listen>unix:path=\(directory.path)/\(name)</listen>
            \(program == nil ? "" : "<servicedir>\(directory.path)/services</servicedir>")
            <limit name="service_start_timeout">1000</limit>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
            """, name + ".conf")
        let bus = try Program(
            PrivateDesktop.daemons + "dbus-daemon",
            [
                "--config-file=\(directory.path)/\(name).conf", "--nofork", "--nopidfile",
                "--print-address",
            ], environment: environment)
        try eventually("the bus says where it is") { bus.output.contains("unix:path=") }
        return bus
    }

    func stopBus() throws {
        try bus?.end(by: SIGTERM)
        bus = nil
    }

    /// Another bus in its place, and everybody on the old one has lost it.
    func restartBus(startingKeyringWith program: String?) throws {
        try stopBus()
        try startBus(startingKeyringWith: program)
    }

    /// Stops it where it stands: it accepts connections, and never answers.
    func freezeBus() throws { kill(try #require(bus).pid, SIGSTOP) }
    func thawBus() throws { kill(try #require(bus).pid, SIGCONT) }

    // MARK: The keyring

    /// Locked, it is as after a login without a password: nothing of it was unlocked yet.
    func startKeyring(locked: Bool = false) throws {
        // `--foreground`, so that the process is ours to end.
        keyring = try Program(
            PrivateDesktop.daemons + "gnome-keyring-daemon",
            ["--foreground"] + (locked ? [] : ["--unlock"]) + [
                "--components=secrets", "--control-directory=\(directory.path)/keyring",
            ], environment: environment, input: locked ? "" : PrivateDesktop.password)
        try eventually("gnome-keyring offers the Secret Service") {
            try send(
                "org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner",
                "string:org.freedesktop.secrets"
            ).contains("true")
        }
    }

    func stopKeyring(by signal: Int32 = SIGTERM) throws {
        try keyring?.end(by: signal)
        keyring = nil
    }

    /// Stops its process where it stands: calls to it get no answer.
    func freezeKeyring() throws { kill(try #require(keyring).pid, SIGSTOP) }
    func thawKeyring() throws { kill(try #require(keyring).pid, SIGCONT) }

    func lock() throws {
        let login = "/org/freedesktop/secrets/collection/login"
        // One that has just come does not know its collections yet, and locks none.
        try eventually("it is locked") {
            try send(
                "org.freedesktop.secrets", "/org/freedesktop/secrets",
                "org.freedesktop.Secret.Service.Lock", "array:objpath:" + login
            ).contains(login)
        }
    }

    /// As pam_gnome_keyring does it, over the control socket, and without a signal to anybody.
    func unlock() throws {
        let descriptor = try UnixSocket.make(SOCK_STREAM)
        defer { close(descriptor) }
        try #require(
            UnixSocket.call(connect, descriptor, directory.path + "/keyring/control") == 0)
        let password = Array(PrivateDesktop.password.utf8)
        let unlock: UInt32 = 1
        var message: [UInt8] = [0]
        for number in [UInt32(8 + 4 + password.count), unlock, UInt32(password.count)] {
            message += withUnsafeBytes(of: number.bigEndian) { Array($0) }
        }
        message += password
        try #require(write(descriptor, message, message.count) == message.count)
        var answer = [UInt8](repeating: 0xFF, count: 8)
        try #require(recv(descriptor, &answer, 8, Int32(MSG_WAITALL)) == 8)
        try #require(answer[4...] == [0, 0, 0, 0], "gnome-keyring refused to unlock")
    }

    /// The stored session of a profile, as it lies in the keyring; nil if there is none.
    func storedSession(_ profile: String = "default") throws -> JSONObject? {
        if let double {
            // One that was emptied stands for none: KeePassXC asks before it deletes.
            return try double.items(of: profile).first { !$0.secret.isEmpty }
                .map { try JSONObject($0.secret) }
        }
        let found = try lookUp(profile)
        return try found.wasGiven ? JSONObject(found.output) : nil
    }

    /// Another program of the user's that wants a profile's secret, and shows prompts for it; what it
    /// wrote, and whether it was given the secret.
    func lookUp(_ profile: String = "default") throws -> (wasGiven: Bool, output: String) {
        let program = try Program(
            PrivateDesktop.daemons + "secret-tool",
            ["lookup", "xdg:schema", "com.canopy-io.canopyd.session", "profile", profile],
            environment: environment)
        return (try program.end() == 0, program.output)
    }

    /// How many items of a schema the keyring has.
    func items(ofSchema schema: String) throws -> Int {
        let program = try Program(
            PrivateDesktop.daemons + "secret-tool", ["search", "--all", "xdg:schema", schema],
            environment: environment)
        try program.end()
        return program.output.components(separatedBy: "schema = ").count - 1
    }

    func clearKeyring() throws {
        let program = try Program(
            PrivateDesktop.daemons + "secret-tool",
            ["clear", "xdg:schema", "com.canopy-io.canopyd.session"], environment: environment)
        try #require(program.end() == 0)
    }

    private func send(_ name: String, _ path: String, _ method: String, _ argument: String)
        throws -> String
    {
        let program = try Program(
            PrivateDesktop.daemons + "dbus-send",
            ["--session", "--print-reply", "--dest=" + name, path, method, argument],
            environment: environment)
        try program.end()
        return program.output
    }
}
