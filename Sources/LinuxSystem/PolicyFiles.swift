package import AgentCore
internal import CLinux
internal import Glibc

/// The programs that the access policy names, as they are on this machine.
package enum PolicyFiles {
    /// What somebody should know about the paths in `AllowExecutable=`.
    package static func remarks(on settings: Settings) -> [String] {
        settings.executablesAllowed.compactMap { profile, path in
            problem(with: path).map { "[policy \(profile)]: AllowExecutable=\(path): \($0)" }
        }
    }

    /// What keeps the path from naming a program; nil for nothing.
    private static func problem(with path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            return errno == ENOENT || errno == ENOTDIR
                ? "there is no such program" : "\(SystemError.last("stat"))"
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o111 != 0 else {
            return "this is no program"
        }
        return isScript(path)
            ? "this is a script: the program that asks is its interpreter, and naming that lets every "
                + "script of its in; AllowUnit= tells them apart" : nil
    }

    private static func isScript(_ path: String) -> Bool {
        do throws(SystemError) {
            let file = try FileDescriptor.open(path, O_RDONLY | O_NONBLOCK)
            var start: [UInt8] = [0, 0]
            return read(file.number, &start, 2) == 2 && start == Array("#!".utf8)
        } catch {
            // One that may be run and not read is compiled.
            return false
        }
    }
}
