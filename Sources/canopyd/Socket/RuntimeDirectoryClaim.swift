internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The runtime directory, held against other canopyds: wherever they listen, they would share its
/// marks and the record of what the desktop was told.
///
/// The lock is the directory's own, so that a full file system is no obstacle.
final class RuntimeDirectoryClaim {
    private let path: String?
    private var lock: FileLock?
    private var locked: FileIdentity?

    /// Throws ``ListeningSocket/Unusable/alreadyRunning(path:)`` if another canopyd serves there, and
    /// a ``SystemError`` if that cannot be known.
    init() throws {
        // Without one there is nothing to share: the socket has a path elsewhere, or is the manager's.
        path = try? Environment.process.runtimeDirectory
        guard let path else { return }
        do throws(SystemError) {
            guard try !take(path) else { return }
        } catch {
            // Nobody of ours keeps marks where nothing can be made or found. If the socket is to be
            // there, its own claim says what is wrong and what to do.
            guard RuntimeDirectoryClaim.isUnusable(error) else { throw error }
            return
        }
        throw ListeningSocket.Unusable.alreadyRunning(path: path)
    }

    /// Takes the directory that has come in place of the one that was held, unless another canopyd was
    /// quicker, which would have been the first then, or nothing can be had there any more.
    func renew() {
        guard let path, FileIdentity(at: path) != locked else { return }
        _ = try? take(path)
    }

    /// Makes the directory if it is missing, and takes its lock; false if somebody has it.
    ///
    /// It is made in a directory of ours, or in one that is everybody's: who has become root with
    /// another user's variables must not leave that user a directory of root's.
    private func take(_ path: String) throws(SystemError) -> Bool {
        var status = stat()
        guard stat(Directory.parent(of: path), &status) == 0 else { throw .last("stat", path) }
        if status.st_uid == getuid() || status.st_uid == 0, mkdir(path, 0o700) != 0,
            errno != EEXIST
        {
            throw .last("mkdir", path)
        }
        let file = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)
        guard fstat(file.number, &status) == 0 else { throw .last("fstat", path) }
        guard status.st_uid == getuid() else {
            throw SystemError("open", code: EACCES, subject: path)
        }
        // What a plain mkdir leaves visible, another user could lock. What others may write is not ours
        // to trust any more: that the socket's claim refuses.
        if status.st_mode & 0o022 == 0, status.st_mode & 0o077 != 0,
            fchmod(file.number, 0o700) != 0
        {
            throw .last("fchmod", path)
        }
        locked = FileIdentity(status)
        lock = try FileLock.take(file, of: path)
        return lock != nil
    }

    private static func isUnusable(_ error: SystemError) -> Bool {
        [
            ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES, EPERM, EROFS, ENOSPC, EDQUOT,
        ].contains(error.code)
    }
}
