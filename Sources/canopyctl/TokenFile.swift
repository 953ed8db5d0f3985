internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A file that holds a token and nothing else, replaced as a whole, readable by its owner alone.
struct TokenFile {
    let path: String

    /// Replaces the contents: a reader finds the old token or the new one, never a part.
    func write(_ token: Secret) throws(Complaint) {
        // Beside it, or the rename would cross file systems; named for us, or two writers would mix.
        let temporary = "\(path).\(getpid()).new"
        do throws(SystemError) {
            unlink(temporary)
            let file = try FileDescriptor.open(
                temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            // A umask may have taken away what its reader needs.
            guard fchmod(file.number, 0o600) == 0 else { throw .last("fchmod", temporary) }
            let written = token.withBytes { bytes in
                Result { () throws(SystemError) in
                    try file.writeAll(bytes, subject: temporary)
                }
            }
            try written.get()
            guard rename(temporary, path) == 0 else { throw .last("rename", path) }
        } catch {
            unlink(temporary)
            throw Complaint(
                .failure, "the token file cannot be written", detail: "\(error)",
                cure: "see to it that the directory exists and is yours to write: \(path)")
        }
    }

    func remove() {
        // What is not there need not be removed.
        unlink(path)
    }
}
