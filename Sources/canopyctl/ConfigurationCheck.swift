internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Reads canopyd.conf as canopyd does.
struct ConfigurationCheck {
    let finding: Finding

    /// The defaults where the file cannot be used.
    let settings: Settings

    init() {
        let path: String
        do throws(Environment.Unusable) {
            path = try Environment.process.configurationFile
        } catch {
            settings = Settings()
            finding = Finding(.configuration, .failed, "\(error)", fix: "export HOME=~")
            return
        }
        do throws(SystemError) {
            let file = try FileDescriptor.open(path, O_RDONLY | O_NONBLOCK)
            let bytes = try file.readAll(limit: Limits.configurationBytes, subject: path)
            let parsed = bytes.withUnsafeBytes { Settings.parse($0, file: path) }
            let edit = "${EDITOR:-vi} \(path)"
            if let fault = parsed.errors.first {
                settings = Settings()
                finding = Finding(.configuration, .failed, fault.description, fix: edit)
            } else {
                settings = parsed.settings
                finding =
                    parsed.warnings.first.map {
                        Finding(.configuration, .warning, $0.description, fix: edit)
                    } ?? Finding(.configuration, .ok, path)
            }
        } catch {
            settings = Settings()
            finding =
                error.code == ENOENT
                ? Finding(.configuration, .ok, "there is none, and none is needed")
                : Finding(.configuration, .failed, "\(error)", fix: "chmod u+r \(path)")
        }
    }
}
