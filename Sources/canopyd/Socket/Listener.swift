internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The API's socket: claims its path, and lets clients in.
final class Listener {
    private let descriptor: Int32

    /// The path that is ours to remove at the end; nil for a socket of the service manager.
    private let claim: Claim?
    private let loop: EventLoop
    private let connections: Connections
    private var watch: DescriptorWatch?
    private var isAwake = true
    private let user = getuid()

    /// Held so that there is one to tell a client with that there are too many.
    private var spare: Int32

    /// Connections at a time.
    var limit: Int {
        didSet { effectiveLimit = Listener.effective(limit) }
    }

    /// The limit, or what the descriptors suffice for.
    private var effectiveLimit: Int

    /// Lets clients in at `socket` from now on.
    init(
        _ socket: ListeningSocket, limit: Int, _ loop: EventLoop, _ connections: Connections
    ) throws(SystemError) {
        descriptor = socket.descriptor
        claim = socket.claim
        self.limit = limit
        effectiveLimit = Listener.effective(limit)
        self.loop = loop
        self.connections = connections
        spare = Listener.openSpare()
        watch = try loop.watch(descriptor, .readable) { [unowned self] _ in self.accept() }
        connections.closed = { [unowned self] in self.resume() }
    }

    private static func openSpare() -> Int32 { clinux_open("/dev/null", O_RDONLY, 0) }

    private func accept() {
        for _ in 0..<Limits.acceptBurst {
            let client = clinux_accept(descriptor)
            if client >= 0 {
                admit(client)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED:
                continue
            case EAGAIN:
                return
            case EMFILE where spare >= 0:
                Glibc.close(spare)
                spare = -1
                let refused = clinux_accept(descriptor)
                if refused >= 0 { refuse(refused) }
                spare = Listener.openSpare()
            default:
                let error = SystemError.last("accept4")
                Journal.warning(
                    "No more connections until one closes", ("error", error.description))
                return pause()
            }
        }
    }

    private func admit(_ client: Int32) {
        do throws(SystemError) {
            let peer = try PeerCredentials(of: client)
            guard peer.user == user else {
                Journal.warning(
                    "A connection of another user was refused", ("uid", String(peer.user)))
                Glibc.close(client)
                return
            }
            guard connections.count < effectiveLimit else { return refuse(client) }
            try connections.add(client)
        } catch {
            Journal.warning("A connection was refused", ("error", error.description))
            Glibc.close(client)
        }
    }

    private static func effective(_ limit: Int) -> Int {
        min(limit, max(1, DescriptorLimit.current - Limits.descriptorsKept))
    }

    private func refuse(_ client: Int32) {
        let problem = Problem(
            .tooManyConnections,
            "\(connections.count) connections are open; Connections= in [limits] of canopyd.conf "
                + "and the limit on open files set how many may be")
        let bytes = Reply(problem).bytesBeforeClosing
        // It fits into the buffer of a new socket; a client that is gone needs no answer.
        _ = Glibc.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        Glibc.close(client)
    }

    private func pause() {
        isAwake = false
        watch?.wait(for: [])
    }

    /// A descriptor was freed.
    private func resume() {
        guard !isAwake, watch != nil else { return }
        isAwake = true
        watch?.wait(for: .readable)
    }

    /// Lets nobody in any more, and frees the path if it is ours.
    func stop() {
        guard watch != nil else { return }
        watch = nil
        claim?.release()
        Glibc.close(descriptor)
    }
}

/// How many descriptors this process may have.
enum DescriptorLimit {
    /// The soft limit.
    static var current: Int { Int(clamping: limits.rlim_cur) }

    private static var limits: rlimit {
        var limits = rlimit()
        // Cannot fail: the resource exists and the pointer is good.
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
        return limits
    }

    /// Raises the soft limit to the hard one.
    static func raise() throws(SystemError) {
        var limits = limits
        limits.rlim_cur = limits.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else {
            throw .last("setrlimit", "RLIMIT_NOFILE")
        }
    }
}
