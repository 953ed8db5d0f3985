internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// What the machine has to offer: directories, the service manager, memory.
enum SystemCheck {
    static func findings() -> [Finding] {
        [runtimeDirectory(), socket(), stateDirectory(), lingering(), systemd(), lockedMemory()]
    }

    // MARK: Places

    private static func runtimeDirectory() -> Finding {
        let path: String
        do throws(Environment.Unusable) {
            path = Directory.parent(of: try Environment.process.runtimeDirectory)
        } catch {
            return Finding(
                .runtimeDirectory, .failed, "\(error)",
                fix: SystemdVersion.isRunning
                    ? "sudo apt-get install libpam-systemd  # then log in again"
                    : "mkdir -p -m 700 ~/.local/run && export XDG_RUNTIME_DIR=~/.local/run")
        }
        guard let status = status(of: path) else {
            return Finding(
                .runtimeDirectory, .failed, "\(SystemError.last("stat", path))",
                fix: "mkdir -m 700 \(path)")
        }
        guard status.st_uid == getuid() else {
            return Finding(
                .runtimeDirectory, .failed, "\(path) belongs to another user",
                fix: "unset XDG_RUNTIME_DIR")
        }
        guard status.st_mode & 0o077 == 0 else {
            return Finding(
                .runtimeDirectory, .failed, "\(path) can be entered by other users",
                fix: "chmod 700 \(path)")
        }
        return Finding(.runtimeDirectory, .ok, path)
    }

    private static func socket() -> Finding {
        let path: String
        do {
            path = try Environment.process.agentSocketPath
            _ = try SocketAddress(path: path)
        } catch let error as SocketAddress.Unusable {
            return Finding(
                .socket, .failed, "\(error)", fix: "export XDG_RUNTIME_DIR=/run/user/$UID")
        } catch {
            return Finding(.socket, .skipped, "without a runtime directory there is no socket")
        }
        guard let status = status(of: path) else {
            return Finding(
                .socket, .failed, "\(SystemError.last("stat", path))",
                fix: SystemdVersion.isRunning
                    ? "systemctl --user enable --now canopyd.socket" : DaemonCheck.startingByHand)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            return Finding(.socket, .failed, "\(path) is no socket", fix: "rm -i \(path)")
        }
        guard status.st_uid == getuid() else {
            return Finding(
                .socket, .failed, "\(path) belongs to another user", fix: "unset CANOPYD_SOCKET")
        }
        guard status.st_mode & 0o077 == 0 else {
            return Finding(
                .socket, .failed, "\(path) can be used by other users", fix: "chmod 600 \(path)")
        }
        return Finding(.socket, .ok, path)
    }

    private static func stateDirectory() -> Finding {
        let path: String
        do throws(Environment.Unusable) {
            path = try Environment.process.stateDirectory
        } catch {
            return Finding(.stateDirectory, .failed, "\(error)", fix: "export HOME=~")
        }
        guard let status = status(of: path) else {
            guard errno == ENOENT else {
                return Finding(
                    .stateDirectory, .failed, "\(SystemError.last("stat", path))",
                    fix: "ls -ld \(path)")
            }
            return Finding(.stateDirectory, .ok, "\(path) is made by the first sign-in")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return Finding(
                .stateDirectory, .failed, "\(path) is no directory", fix: "rm -i \(path)")
        }
        guard access(path, R_OK | W_OK | X_OK) == 0, status.st_mode & 0o700 == 0o700 else {
            return Finding(
                .stateDirectory, .failed, "\(path) cannot be read and written",
                fix: "chmod u+rwx \(path)")
        }
        return Finding(.stateDirectory, .ok, path)
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    // MARK: The service manager

    /// Without lingering a user's services start at login and end at logout.
    private static func lingering() -> Finding {
        guard SystemdVersion.isRunning else {
            return Finding(.lingering, .skipped, "this machine was not started by systemd")
        }
        guard let name = userName() else {
            return Finding(.lingering, .skipped, "the user has no name in /etc/passwd")
        }
        if access("/var/lib/systemd/linger/\(name)", F_OK) == 0 {
            return Finding(.lingering, .ok, "canopyd runs from boot on, with nobody logged in")
        }
        let environment = Environment.process
        if environment["WAYLAND_DISPLAY"] != nil || environment["DISPLAY"] != nil {
            return Finding(.lingering, .ok, "canopyd runs while \(name) is logged in")
        }
        return Finding(
            .lingering, .failed,
            "there is no desktop, and without lingering canopyd ends when \(name) logs out and does "
                + "not start at boot",
            fix: "sudo loginctl enable-linger \(name)")
    }

    /// systemd/systemd#43361: before 256.3 the manager of a lingering user may be killed at logout.
    private static func systemd() -> Finding {
        guard SystemdVersion.isRunning else {
            return Finding(.systemd, .skipped, "this machine was not started by systemd")
        }
        guard let version = SystemdVersion.installed() else {
            return Finding(.systemd, .skipped, "systemd does not say which version it is")
        }
        guard version.major >= 252 else {
            return Finding(
                .systemd, .warning,
                "systemd \(version.text) is older than 252, with which the units were tested",
                fix: "sudo apt-get install systemd")
        }
        guard version.major < 254 || version.major >= 257 else {
            return Finding(
                .systemd, .warning,
                "systemd \(version.text): before 256.3 the service manager may be killed at logout, "
                    + "lingering or not; the session survives, and canopyd starts again at login",
                fix: "sudo apt-get install systemd")
        }
        return Finding(.systemd, .ok, version.text)
    }

    /// As /etc/passwd has it: a static program can ask nobody else.
    private static func userName() -> String? {
        do throws(SystemError) {
            let file = try FileDescriptor.open("/etc/passwd", O_RDONLY)
            let bytes = try file.readAll(limit: Limits.userListBytes, subject: "/etc/passwd")
            for line in bytes.split(separator: UInt8(ascii: "\n")) {
                let fields = line.split(
                    separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
                guard fields.count > 2,
                    String(decoding: fields[2], as: UTF8.self) == String(getuid())
                else { continue }
                return String(decoding: fields[0], as: UTF8.self)
            }
        } catch {
            return nil
        }
        return Environment.process["USER"]
    }

    // MARK: Memory

    private static func lockedMemory() -> Finding {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit) == 0 else {
            return Finding(.lockedMemory, .skipped, "\(SystemError.last("getrlimit"))")
        }
        guard limit.rlim_cur < Limits.lockedMemoryBytes else {
            return Finding(.lockedMemory, .ok, "secrets are kept out of swap space")
        }
        return Finding(
            .lockedMemory, .warning,
            "only \(limit.rlim_cur) bytes may be locked: large tokens could be written to swap space",
            fix: "ulimit -l \(Limits.lockedMemoryBytes >> 10)")
    }
}
