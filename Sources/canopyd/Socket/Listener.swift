internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The API's socket: keeps its path leading to it, and lets clients in.
final class Listener {
    private var socket: ListeningSocket

    /// Where clients look for us; nil for a socket of the service manager without a path.
    private let address: SocketAddress?

    /// What stood at the path of the service manager's socket at the start.
    private let found: FileIdentity?
    private var pathWatch: PathWatch?

    /// Why the path could not be taken again; told once.
    private var complaint: String?
    private let loop: EventLoop
    private let connections: Connections
    private var watch: DescriptorWatch?

    /// When accepting is tried again after it failed; nil while it works.
    private var acceptRetry: BootTime?

    /// When the path is tried again after it could not be taken, and how long after the last time.
    private var pathRetry: (at: BootTime, after: TimeSpan)?
    private let runtimeDirectory: RuntimeDirectoryClaim
    private let user = getuid()

    /// Held so that there is one to tell a client with that there are too many.
    private var spare: Int32

    /// Connections at a time; fewer if the descriptors do not suffice.
    var limit: Int

    /// Descriptors for connections and profiles.
    private let descriptors = DescriptorLimit.current - Limits.descriptorsKept

    /// Lets clients in at `socket` from now on.
    init(
        _ socket: ListeningSocket, in runtimeDirectory: RuntimeDirectoryClaim, limit: Int,
        _ loop: EventLoop, _ connections: Connections
    ) throws(SystemError) {
        self.socket = socket
        self.runtimeDirectory = runtimeDirectory
        address = socket.address
        found = address.flatMap { FileIdentity(at: $0.path) }
        self.limit = limit
        self.loop = loop
        self.connections = connections
        spare = Listener.openSpare()
        watch = try watching(socket)
        connections.closed = { [unowned self] in if acceptRetry != nil { resume() } }
        watchPath()
    }

    private func watching(_ socket: ListeningSocket) throws(SystemError) -> DescriptorWatch {
        try loop.watch(socket.descriptor, .readable) { [unowned self] _ in acceptSome() }
    }

    private static func openSpare() -> Int32 { clinux_open("/dev/null", O_RDONLY, 0) }

    // MARK: Clients

    /// Lets in those who wait, a few at a time and only while they ask: whoever is in already is
    /// served between two that come to no purpose, in a storm too.
    private func acceptSome() {
        for _ in 0..<Limits.acceptsPerTurn {
            switch accept() {
            case .asks: continue
            case .others, .nobody: return
            }
        }
    }

    private enum Arrival {
        /// Somebody who has sent a request.
        case asks
        /// Somebody else, or an error that says nothing of the next one.
        case others
        case nobody
    }

    /// Lets in one who waits.
    private func accept() -> Arrival {
        let client = clinux_accept(socket.descriptor)
        guard client < 0 else { return admit(client) ? .asks : .others }
        switch errno {
        case EINTR, ECONNABORTED:
            return .others
        case EAGAIN:
            return .nobody
        case EMFILE where refuseWithSpare():
            return .others
        default:
            let error = SystemError.last("accept4")
            Journal.write(.connectionsPaused, (.error, error.description))
            pause()
            return .nobody
        }
    }

    /// Tells one client that there are too many, with the descriptor that is held for it; false if
    /// that does not suffice either.
    private func refuseWithSpare() -> Bool {
        guard spare >= 0 else { return false }
        Glibc.close(spare)
        let client = clinux_accept(socket.descriptor)
        if client >= 0 { turnAway(client) }
        // It fails until that client has gone.
        spare = Listener.openSpare()
        return client >= 0
    }

    /// Returns whether the client has asked already.
    private func admit(_ client: Int32) -> Bool {
        do throws(SystemError) {
            let peer = try PeerCredentials(of: client)
            guard peer.user == user else {
                Journal.write(
                    .connectionForeign, (.uid, String(peer.user)))
                Glibc.close(client)
                return false
            }
            let kept = connections.agent.profiles.count * Limits.descriptorsPerProfile
            guard connections.count < min(limit, max(1, descriptors - kept)) else {
                turnAway(client)
                return false
            }
            return connections.add(client, peer)
        } catch {
            Journal.write(.connectionRefused, (.error, error.description))
            Glibc.close(client)
            return false
        }
    }

    private func turnAway(_ client: Int32) {
        let problem = Problem(
            .tooManyConnections,
            "\(connections.count) connections are open; Connections= in [limits] of canopyd.conf "
                + "and the limit on open files set how many may be")
        do throws(SystemError) {
            try connections.turnAway(client, problem)
        } catch {
            Journal.write(.connectionRefused, (.error, error.description))
            Glibc.close(client)
        }
    }

    /// Leaves clients in the kernel's queue, until a connection closes or a moment has passed: what
    /// was lacking may come back without any of our doing.
    private func pause() {
        acceptRetry = .now + .seconds(Int64(Limits.acceptRetrySeconds))
        watch?.wait(for: [])
    }

    private func resume() {
        acceptRetry = nil
        if spare < 0 { spare = Listener.openSpare() }
        watch?.wait(for: .readable)
    }

    /// When something is to be tried again; nil for never.
    var wakeUp: BootTime? { earlier(acceptRetry, pathRetry?.at) }

    /// Does what is due.
    func wake(at now: BootTime) {
        if let acceptRetry, acceptRetry <= now { resume() }
        if let pathRetry, pathRetry.at <= now { keepPath() }
    }

    // MARK: The path

    private func watchPath() {
        guard let directory = address?.directory else { return }
        do throws(SystemError) {
            pathWatch = try PathWatch(directory: directory, loop) { [unowned self] in keepPath() }
            keepPath()
        } catch {
            Journal.write(
                .pathUnwatched, (.error, error.description))
        }
    }

    /// Makes the socket again where its path does not lead to it any more.
    private func keepPath() {
        guard watch != nil, let address else { return }
        // First followed and then looked at: what changes in between is told.
        repeat { pathWatch?.follow() } while !leadsToUs(address) && takeAgain(address)
    }

    private func leadsToUs(_ address: SocketAddress) -> Bool {
        if let claim = socket.claim { return claim.isIntact }
        return found != nil && FileIdentity(at: address.path) == found
    }

    private func takeAgain(_ address: SocketAddress) -> Bool {
        do {
            if let claim = socket.claim, claim.holdsPath {
                try claim.lockAgain()
            } else {
                try replace(by: ListeningSocket(at: address, after: socket.claim))
                Journal.write(.pathRemade, (.path, address.path))
            }
            complaint = nil
            pathRetry = nil
            runtimeDirectory.renew()
            return true
        } catch {
            retryPath()
            let words = "\(error)"
            if complaint != words {
                Journal.write(.pathLost, (.error, words))
            }
            complaint = words
            return false
        }
    }

    /// Tries again by and by: that there is room, or a right, nobody tells.
    private func retryPath() {
        let pause = min(
            pathRetry.map { $0.after * 2 } ?? .seconds(Int64(Limits.pathRetrySeconds)),
            .seconds(Int64(Limits.longestPathRetrySeconds)))
        pathRetry = (.now + pause, pause)
    }

    private func replace(by new: ListeningSocket) throws(SystemError) {
        let newWatch: DescriptorWatch
        do throws(SystemError) {
            newWatch = try watching(new)
        } catch {
            new.close()
            throw error
        }
        // Who came by the old path is let in still; nobody else can come that way.
        while accept() != .nobody {}
        watch = consume newWatch
        if acceptRetry != nil { watch?.wait(for: []) }
        socket.close()
        socket = new
    }

    /// Lets nobody in any more, and frees the path if it is ours.
    func stop() {
        guard watch != nil else { return }
        watch = nil
        acceptRetry = nil
        pathRetry = nil
        pathWatch = nil
        socket.close()
    }
}
