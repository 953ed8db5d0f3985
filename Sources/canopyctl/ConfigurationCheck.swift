internal import AgentCore
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
        do throws(ConfigurationFile.Fault) {
            guard let bytes = try ConfigurationFile.read(path) else {
                settings = Settings()
                finding = Finding(.configuration, .ok, "there is none, and none is needed")
                return
            }
            let parsed = bytes.withUnsafeBytes { Settings.parse($0, file: path) }
            let edit = "${EDITOR:-vi} \(path)"
            if let fault = parsed.errors.first {
                settings = Settings()
                finding = Finding(.configuration, .failed, fault.description, fix: edit)
            } else if let fault = TrustFile.fault(in: parsed.settings) {
                settings = parsed.settings
                finding = Finding(
                    .configuration, .failed, "\(path): \(fault.detail)", fix: fault.fix ?? edit)
            } else {
                settings = parsed.settings
                let remarks =
                    parsed.warnings.map(\.description)
                    + PolicyFiles.remarks(on: parsed.settings).map { "\(path): \($0)" }
                finding =
                    remarks.first.map { Finding(.configuration, .warning, $0, fix: edit) }
                    ?? Finding(.configuration, .ok, path + ConfigurationCheck.guarded(settings))
            }
        } catch {
            settings = Settings()
            finding = Finding(
                .configuration, .failed, error.detail,
                fix: error.isCommand ? error.cure : "mv \(path) \(path).old  # none is needed")
        }
    }

    /// The profiles that not every program may use: who wonders about a refusal finds them here.
    private static func guarded(_ settings: Settings) -> String {
        guard !settings.policies.isEmpty else { return "" }
        let names = settings.policies.keys.sorted().map(\.text).joined(separator: ", ")
        return "; [policy] says who may use: \(names)"
    }
}
