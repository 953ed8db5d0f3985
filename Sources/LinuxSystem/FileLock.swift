package import AgentCore
internal import CLinux
internal import Glibc

/// An exclusive lock on a file that is never renamed or removed, or on a directory; given back by the
/// kernel when the process ends, however it ends.
///
/// Nothing is judged by age.
package struct FileLock: ~Copyable, Sendable {
    private let file: FileDescriptor

    /// Takes the lock if it is free; nil if somebody has it.
    package static func take(_ path: String) throws(SystemError) -> FileLock? {
        try take(
            FileDescriptor.open(path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600), of: path)
    }

    /// The same for what is open already, a directory for one.
    package static func take(
        _ file: consuming FileDescriptor, of path: String
    ) throws(SystemError) -> FileLock? {
        while flock(file.number, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return nil }
            guard errno == EINTR else { throw .last("flock", path) }
        }
        return FileLock(file: file)
    }

    /// Takes the lock within `patience`; nil if somebody kept it.
    ///
    /// Asks ten times a second: flock has no deadline of its own, and a signal to end a blocking
    /// one would be lost if it came a moment early.
    package static func take(
        _ path: String, patience: TimeSpan
    ) throws(SystemError) -> FileLock? {
        let end = BootTime.now + patience
        while true {
            if let lock = try take(path) { return lock }
            guard BootTime.now < end else { return nil }
            var pause = timespec(tv_sec: 0, tv_nsec: 100_000_000)
            nanosleep(&pause, nil)
        }
    }

    /// The descriptor whose lock it is; it stays the lock's own.
    package var descriptor: Int32 { file.number }

    /// Another hold on the same lock, which is free once both are gone; `path` is for the error.
    package func duplicate(of path: String) throws(SystemError) -> FileLock {
        let copy = clinux_duplicate_above(file.number, 3)
        guard copy >= 0 else { throw .last("fcntl", path) }
        return FileLock(file: FileDescriptor(owning: copy))
    }

    private init(file: consuming FileDescriptor) {
        self.file = file
    }
}
