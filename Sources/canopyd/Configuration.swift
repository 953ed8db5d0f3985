internal import AgentCore
internal import CLinux
internal import Glibc
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
        do throws(SystemError) {
            guard let bytes = try contents(of: path) else {
                guard isNamed else { return .read(Settings(), warnings: []) }
                return .unusable(["\(path): there is no such file"])
            }
            let parsed = bytes.withUnsafeBytes { Settings.parse($0, file: path) }
            guard parsed.errors.isEmpty else {
                return .unusable((parsed.errors + parsed.warnings).map(\.description))
            }
            var warnings = parsed.warnings.map(\.description)
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

    /// The file's bytes; nil if there is no such file.
    ///
    /// Of one that is too large, more than is allowed and not all.
    private func contents(of path: String) throws(SystemError) -> [UInt8]? {
        // Not to hang on a FIFO; reading a directory fails by itself.
        let descriptor = clinux_open(path, O_RDONLY | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            let failure = SystemError.last("open", path)
            // A link that leads nowhere is no wish to do without what it led to.
            guard failure.code == ENOENT || failure.code == ENOTDIR, !isLink(path),
                !isLostLink(Directory.parent(of: path))
            else { throw failure }
            return nil
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last("fstat", path) }
        // Nobody may have written to it yet, and nothing read is no file without sections.
        guard status.st_mode & S_IFMT != S_IFIFO else {
            throw SystemError("read a FIFO", code: EINVAL, subject: path)
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count <= Limits.configurationBytes {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .last("read", path) }
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return bytes
    }

    private func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private func isLostLink(_ path: String) -> Bool {
        var status = stat()
        return isLink(path) && stat(path, &status) != 0
    }
}
