internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A socket that listens at the API's path, and how it came to.
struct ListeningSocket {
    let descriptor: Int32

    /// What is ours of the path; nil for a socket that the service manager made.
    let claim: Claim?

    /// Takes over a socket that the service manager listens at.
    init(inherited descriptor: Int32) {
        self.descriptor = descriptor
        claim = nil
    }

    /// Makes the directory and the socket, unless another canopyd serves there.
    init(at address: SocketAddress) throws(Unusable) {
        let claim = try Claim(address)
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
            0)
        guard descriptor >= 0 else { throw .system(.last("socket")) }
        do throws(Unusable) {
            try claim.take(descriptor)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.claim = claim
    }

    enum Unusable: Error, CustomStringConvertible {
        case alreadyRunning(path: String)
        case directory(path: String, problem: String, remedy: String)
        case notASocket(path: String)
        case system(SystemError)

        var description: String {
            switch self {
            case .alreadyRunning(let path): "already running: another canopyd serves at \(path)"
            case .directory(let path, let problem, let remedy): "\(path) \(problem); \(remedy)"
            case .notASocket(let path):
                "\(path) exists and is not a socket; canopyd removes only sockets that nobody "
                    + "listens at: move it away, or set CANOPYD_SOCKET to another path"
            case .system(let error): error.description
            }
        }
    }
}

/// A socket's path, held against other canopyds by a lock on a file beside it.
///
/// Two that start at once, with a socket that a killed one left behind, would otherwise both find
/// it dead: the second would remove the socket that the first has just made.
final class Claim {
    private let address: SocketAddress
    private let lock: Int32
    /// Which file our socket is, once it is bound.
    private var made: (device: UInt64, inode: UInt64)?

    init(_ address: SocketAddress) throws(ListeningSocket.Unusable) {
        self.address = address
        try Claim.prepareDirectory(of: address.path)
        let path = Claim.lockPath(of: address.path)
        lock = clinux_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { throw .system(.last("open", path)) }
        while flock(lock, LOCK_EX | LOCK_NB) != 0 {
            if errno == EINTR { continue }
            let error = SystemError.last("flock", path)
            Glibc.close(lock)
            throw error.code == EWOULDBLOCK
                ? .alreadyRunning(path: address.path) : .system(error)
        }
    }

    deinit { Glibc.close(lock) }

    /// `agent.sock` is guarded by `agent.lock`.
    private static func lockPath(of path: String) -> String {
        (path.hasSuffix(".sock") ? String(path.dropLast(5)) : path) + ".lock"
    }

    /// Makes the directory if it is missing; others must not be able to put a socket of theirs
    /// into it.
    private static func prepareDirectory(
        of path: String
    ) throws(ListeningSocket.Unusable) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else {
            throw .directory(
                path: path, problem: "is no absolute path below a directory",
                remedy: "give the socket's whole path")
        }
        let directory = String(path[..<slash])
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
    fileprivate func take(_ descriptor: Int32) throws(ListeningSocket.Unusable) {
        try removeDeadSocket()
        let mask = umask(0o177)
        defer { umask(mask) }
        do throws(SystemError) {
            try address.bind(descriptor)
        } catch {
            throw .system(error)
        }
        var status = stat()
        guard lstat(address.path, &status) == 0 else {
            throw .system(.last("lstat", address.path))
        }
        made = (UInt64(status.st_dev), UInt64(status.st_ino))
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
        var status = stat()
        guard let made, lstat(address.path, &status) == 0,
            made == (UInt64(status.st_dev), UInt64(status.st_ino))
        else { return }
        unlink(address.path)
    }
}
