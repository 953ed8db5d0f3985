internal import AgentCore
internal import LinuxSystem

/// Where the configuration is read from, and what it says on top of the command line.
struct Configuration {
    /// The file; nil where no home directory says where it would be.
    let path: String?

    /// Whether the file was named on the command line, and so has to exist.
    let isNamed: Bool

    /// The level on the command line, which wins over the file's.
    let logLevel: LogLevel?

    enum Outcome {
        case read(Settings, warnings: [String])

        /// Nothing is wrong with what the file says, but with a file that it names: with what is in
        /// memory canopyd can go on until it is there.
        case lacking(Settings, warnings: [String], String)

        case unusable([String])
    }

    /// Reads the file; without one, the defaults.
    func read() -> Outcome {
        guard let path else { return .read(Settings(), warnings: []) }
        do throws(ConfigurationFile.Fault) {
            guard let bytes = try ConfigurationFile.read(path) else {
                guard isNamed else { return .read(Settings(), warnings: []) }
                return .unusable([
                    "\(path): there is no such file; name another, or leave out --config"
                ])
            }
            let parsed = bytes.withUnsafeBytes { Settings.parse($0, file: path) }
            guard parsed.errors.isEmpty else {
                return .unusable(Settings.lines(parsed.errors + parsed.warnings))
            }
            var warnings = Settings.lines(parsed.warnings)
            warnings += PolicyFiles.remarks(on: parsed.settings).map { "\(path): \($0)" }
            if !parsed.settings.executablesAllowed.isEmpty, UserNamespace.isOwn {
                warnings.append("\(path): \(UserNamespace.blindness)")
            }
            if let fault = TrustFile.fault(in: parsed.settings) {
                let cure = fault.fix.map { "; \($0)" } ?? "; put it there, or name another"
                return .lacking(
                    parsed.settings, warnings: warnings, "\(path): \(fault.detail)\(cure)")
            }
            return .read(parsed.settings, warnings: warnings)
        } catch {
            return .unusable([error.description])
        }
    }
}
