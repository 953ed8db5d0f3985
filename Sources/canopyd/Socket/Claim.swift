internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A socket's path, held against other canopyds by a lock on a file beside it.
///
/// Two that start at once, with a socket that a killed one left behind, would otherwise both find
/// it dead: the second would remove the socket that the first has just made.
final class Claim {
    private let address: SocketAddress
    private var lock: FileLock
    /// Which file our socket is, once it is bound.
    private var made: FileIdentity?

    /// Prepares the directory and takes the lock; that of `old`, an earlier claim of ours, is kept
    /// if its file still stands there.
    init(
        _ address: SocketAddress, after old: Claim? = nil
    ) throws(ListeningSocket.Unusable) {
        self.address = address
        try Claim.prepareDirectory(of: address)
        // A lock of our own would shut us out: it is the open file's, not the process's.
        if let old, old.holdsLock {
            do throws(SystemError) {
                lock = try old.lock.duplicate(of: Claim.lockPath(of: address.path))
            } catch {
                throw .system(error)
            }
        } else {
            lock = try Claim.takeLock(of: address)
        }
    }

    private static func takeLock(
        of address: SocketAddress
    ) throws(ListeningSocket.Unusable) -> FileLock {
        do throws(SystemError) {
            if let lock = try FileLock.take(lockPath(of: address.path)) { return lock }
        } catch {
            throw .system(error)
        }
        throw .alreadyRunning(path: address.path)
    }

    /// Whether the socket's path still leads to our socket, and the lock's to our lock.
    var isIntact: Bool { holdsPath && holdsLock }

    /// Whether the socket's path still leads to our socket.
    var holdsPath: Bool { made != nil && FileIdentity(at: address.path) == made }

    /// Takes the lock again after its file has gone, for a socket that is still there: bound anew, it
    /// would be a live one's that stands in its own way.
    func lockAgain() throws(ListeningSocket.Unusable) {
        try Claim.prepareDirectory(of: address)
        lock = try Claim.takeLock(of: address)
    }

    private var holdsLock: Bool {
        guard let ours = FileIdentity(of: lock.descriptor) else { return false }
        return FileIdentity(at: Claim.lockPath(of: address.path)) == ours
    }

    /// `agent.sock` is guarded by `agent.lock`.
    private static func lockPath(of path: String) -> String {
        (path.hasSuffix(".sock") ? String(path.dropLast(5)) : path) + ".lock"
    }

    /// Makes the directory if it is missing; others must not be able to put a socket of theirs
    /// into it.
    private static func prepareDirectory(
        of address: SocketAddress
    ) throws(ListeningSocket.Unusable) {
        guard let directory = address.directory else {
            throw .directory(
                path: address.path, problem: "is no absolute path below a directory",
                remedy: "give the socket's whole path")
        }
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw .system(.last("mkdir", directory))
        }
        var status = stat()
        guard lstat(directory, &status) == 0 else { throw .system(.last("lstat", directory)) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw .directory(
                path: directory, problem: "is not a directory",
                remedy: "move it away, or set CANOPYD_SOCKET to a path elsewhere")
        }
        guard status.st_uid == getuid() else {
            throw .directory(
                path: directory, problem: "belongs to another user (uid \(status.st_uid))",
                remedy: "set CANOPYD_SOCKET to a path in a directory of your own")
        }
        guard status.st_mode & 0o022 == 0 else {
            throw .directory(
                path: directory, problem: "can be written by other users",
                remedy: "run: chmod 700 \(directory)")
        }
    }

    /// Binds the socket `descriptor` to the path and listens.
    func take(_ descriptor: Int32) throws(ListeningSocket.Unusable) {
        try removeDeadSocket()
        let mask = umask(0o177)
        defer { umask(mask) }
        do throws(SystemError) {
            try address.bind(descriptor)
        } catch {
            throw .system(error)
        }
        guard let file = FileIdentity(at: address.path) else {
            throw .system(.last("lstat", address.path))
        }
        made = file
        guard listen(descriptor, Int32(Limits.listenBacklog)) == 0 else {
            throw .system(.last("listen", address.path))
        }
    }

    /// Removes what a killed canopyd left; only the kernel's word that nobody listens counts.
    private func removeDeadSocket() throws(ListeningSocket.Unusable) {
        var status = stat()
        guard lstat(address.path, &status) == 0 else {
            guard errno == ENOENT else { throw .system(.last("lstat", address.path)) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: address.path) }
        let probe = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
            0)
        guard probe >= 0 else { throw .system(.last("socket")) }
        defer { Glibc.close(probe) }
        do throws(SystemError) {
            try address.connect(probe)
        } catch {
            switch error.code {
            case ECONNREFUSED:
                guard unlink(address.path) == 0 || errno == ENOENT else {
                    throw .system(.last("unlink", address.path))
                }
                return
            case EAGAIN:
                // Somebody listens and is busy.
                throw .alreadyRunning(path: address.path)
            default:
                throw .system(error)
            }
        }
        throw .alreadyRunning(path: address.path)
    }

    /// Removes the socket, if the path still leads to ours.
    func release() {
        guard let made, FileIdentity(at: address.path) == made else { return }
        unlink(address.path)
    }
}

/// Which file it is.
struct FileIdentity: Equatable {
    private let device: UInt64
    private let inode: UInt64

    /// What stands at `path`, a link not followed; nil if nothing does, or it cannot be known.
    init?(at path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// What `descriptor` is open on.
    init?(of descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
    }
}
