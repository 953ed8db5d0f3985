internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A socket that listens at the API's path, and how it came to.
struct ListeningSocket {
    let descriptor: Int32

    /// Where it listens; nil for one of the service manager's that has no path.
    let address: SocketAddress?

    /// What is ours of the path; nil for a socket that the service manager made.
    let claim: Claim?

    /// Takes over a socket that the service manager listens at.
    init(inherited descriptor: Int32) {
        self.descriptor = descriptor
        address = SocketAddress(of: descriptor)
        claim = nil
    }

    /// Makes the directory and the socket, unless another canopyd serves there; `old` is what we
    /// had of the path before it was taken from us.
    init(at address: SocketAddress, after old: Claim? = nil) throws(Unusable) {
        let claim = try Claim(address, after: old)
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
        self.address = address
        self.claim = claim
    }

    /// Listens no more, and removes the path if it leads to a socket that we made.
    func close() {
        claim?.release()
        Glibc.close(descriptor)
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
