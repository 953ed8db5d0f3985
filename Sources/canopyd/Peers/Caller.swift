internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The process that connected, and what is known of it.
///
/// Who it is is looked up when somebody first needs to know, and once for a connection: the
/// kernel's word is about the process that called connect(2), and so is every answer here, whoever
/// holds the connection by now.
final class Caller {
    let process: Int32
    private let user: UInt32

    /// The connection's; its owner closes it.
    private let socket: Int32

    /// When it was let in.
    private let since: BootTime
    private var found: Found?

    /// The last of ``ServedProfile/clearance`` that it has: 0 for none.
    var clearance: UInt64 = 0

    /// Apart, so that a connection of whom nobody asks keeps no room for it.
    private final class Found {
        let peer: Peer
        init(_ peer: Peer) { self.peer = peer }
    }

    init(_ credentials: PeerCredentials, on socket: Int32, since: BootTime) {
        process = credentials.process
        user = credentials.user
        self.socket = socket
        self.since = since
    }

    /// Who it is.
    var peer: Peer {
        if let found { return found.peer }
        let peer = look()
        found = Found(peer)
        return peer
    }

    private func look() -> Peer {
        // Processes outside of this one's pid namespace have no number in it.
        guard process > 0 else { return Peer(process: 0, user: user, unknown: .outside) }
        let handle = clinux_peer_process(socket)
        guard handle >= 0 else {
            // Linux before 6.5 does not know the option.
            guard errno == ENOPROTOOPT else {
                let error = SystemError.last("getsockopt", "SO_PEERPIDFD")
                return unknown(
                    [EINVAL, ESRCH, ENODATA].contains(error.code)
                        ? .ended : .unreadable(error.description))
            }
            return look { directory throws(SystemError) in
                guard let start = try directory.start() else {
                    return .unreadable("/proc/\(self.process)/stat says nothing of its start")
                }
                return start <= self.since ? nil : .replaced
            }
        }
        let alive = FileDescriptor(owning: handle)
        return look { _ throws(SystemError) in
            // As long as it lives its number is no other's: the directory is its.
            var state = pollfd(fd: alive.number, events: Int16(POLLIN), revents: 0)
            let count = poll(&state, 1, 0)
            guard count >= 0 else { throw .last("poll") }
            return count == 0 ? nil : .ended
        }
    }

    /// Looks at the process that has the number now, if `doubt` then sees no reason to think that it
    /// is another.
    private func look(
        _ doubt: (borrowing ProcessDirectory) throws(SystemError) -> Peer.Obscurity?
    ) -> Peer {
        do throws(SystemError) {
            let directory = try ProcessDirectory(of: process)
            let units = directory.units()
            let executable = directory.executable()
            let name = executable.value == nil ? directory.name() : nil
            if let reason = try doubt(directory) { return unknown(reason) }
            return Peer(
                process: process, user: user, executable: executable, units: units, name: name)
        } catch {
            guard error.code == ENOENT else { return unknown(Peer.Obscurity(error)) }
            // Signal 0 only asks whether there is a process of the number.
            return unknown(kill(process, 0) == 0 ? .hidden : .ended)
        }
    }

    private func unknown(_ reason: Peer.Obscurity) -> Peer {
        Peer(process: process, user: user, unknown: reason)
    }
}
