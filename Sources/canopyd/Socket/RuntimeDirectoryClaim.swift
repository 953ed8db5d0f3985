internal import Glibc
internal import LinuxSystem

/// The runtime directory, held against other canopyds: wherever they listen, they would share its
/// marks and the record of what the desktop was told.
///
/// The lock is the directory's own, so that a full file system is no obstacle. Once the directory is
/// removed and made again, the lock beside the socket (``Claim``) holds alone.
final class RuntimeDirectoryClaim {
    private let lock: FileLock?

    /// Throws ``ListeningSocket/Unusable/alreadyRunning(path:)`` if another canopyd serves there, and
    /// a ``SystemError`` if that cannot be known.
    init() throws {
        // Without one there is nothing to share: the socket has a path elsewhere, or is the manager's.
        guard let path = try? Environment.process.runtimeDirectory else {
            lock = nil
            return
        }
        do throws(SystemError) {
            if mkdir(path, 0o700) != 0, errno != EEXIST { throw .last("mkdir", path) }
            lock = try FileLock.take(directory: path)
        } catch {
            // Nobody of ours keeps marks where nothing can be made or found. If the socket is to be
            // there, its own claim says what is wrong and what to do.
            guard [ENOENT, ENOTDIR, EACCES, EROFS].contains(error.code) else { throw error }
            lock = nil
            return
        }
        if lock == nil { throw ListeningSocket.Unusable.alreadyRunning(path: path) }
        try Self.closeToOthers(path)
    }

    /// Takes back what others may see in it, as a plain mkdir leaves it.
    ///
    /// What others may write, or is theirs, is not ours to trust any more: that the socket's claim
    /// refuses.
    private static func closeToOthers(_ path: String) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .last("lstat", path) }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == getuid(),
            status.st_mode & 0o022 == 0, status.st_mode & 0o077 != 0
        else { return }
        guard chmod(path, 0o700) == 0 else { throw .last("chmod", path) }
    }
}
