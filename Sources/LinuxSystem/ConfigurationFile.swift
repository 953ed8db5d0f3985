internal import AgentCore
internal import CLinux
internal import Glibc

/// canopyd.conf as it lies on this machine, read by one rule for canopyd and for the doctor.
package enum ConfigurationFile {
    /// Why it cannot be used.
    package struct Fault: Error, Equatable, Sendable, CustomStringConvertible {
        /// The path, and what is wrong with it.
        package let detail: String

        /// What to do about it, as the rest of a sentence; a command where ``isCommand``.
        package let cure: String
        package let isCommand: Bool

        package var description: String { "\(detail); \(cure)" }
    }

    /// The file's bytes; nil if there is no such file.
    ///
    /// Of one that is too large, more than is allowed and not all: `Settings` refuses it. Only a file is
    /// opened: a pipe may hang, opening a device may do something, and neither can be read again.
    package static func read(_ path: String) throws(Fault) -> [UInt8]? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let failure = SystemError.last("stat", path)
            if let fault = lostLink(path, failure) { throw fault }
            if failure.code == ENOENT || failure.code == ENOTDIR { return nil }
            throw fault(path, failure, nil)
        }
        // It has nothing in it, as systemd's masked files; so what is said of it holds.
        if isNull(status) { return [] }
        if let kind = kind(status.st_mode) {
            throw Fault(
                detail: "\(path): this is \(kind), and no file",
                cure: "put the configuration into a file", isCommand: false)
        }
        do throws(SystemError) {
            let file = try FileDescriptor.open(path, O_RDONLY | O_NONBLOCK)
            return try file.readStart(of: Limits.configurationBytes + 1, subject: path)
        } catch {
            throw fault(path, error, status)
        }
    }

    /// Whether it is /dev/null, by whatever name.
    private static func isNull(_ status: stat) -> Bool {
        var null = stat()
        return status.st_mode & S_IFMT == S_IFCHR && stat("/dev/null", &null) == 0
            && null.st_mode & S_IFMT == S_IFCHR && status.st_rdev == null.st_rdev
    }

    /// What it is that is no file; nil for a file.
    private static func kind(_ mode: mode_t) -> String? {
        switch mode & S_IFMT {
        case S_IFREG: nil
        case S_IFDIR: "a directory"
        case S_IFIFO: "a pipe"
        case S_IFSOCK: "a socket"
        default: "a device"
        }
    }

    /// A link that leads nowhere is no wish to do without what it led to.
    private static func lostLink(_ path: String, _ failure: SystemError) -> Fault? {
        guard [ENOENT, ENOTDIR, ELOOP].contains(failure.code) else { return nil }
        for place in [path, Directory.parent(of: path)] where isLostLink(place) {
            return Fault(
                detail: "\(path): \(place == path ? "this" : place) is a link that leads nowhere",
                cure: "rm \(place)", isCommand: true)
        }
        return nil
    }

    private static func isLostLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
            && stat(path, &status) != 0
    }

    /// `status` is the file's; nil where it cannot be looked at.
    private static func fault(_ path: String, _ failure: SystemError, _ status: stat?) -> Fault {
        guard failure.code == EACCES else {
            return Fault(
                detail: "\(failure)", cure: "mend that, or name another file", isCommand: false)
        }
        guard let status else {
            return Fault(
                detail: "\(path): a directory on the way to it may not be entered",
                cure: "namei -l \(path)", isCommand: true)
        }
        return Fault(
            detail: "\(path): it may not be read",
            cure: status.st_uid == getuid() ? "chmod u+r \(path)" : "sudo chmod a+r \(path)",
            isCommand: true)
    }
}
