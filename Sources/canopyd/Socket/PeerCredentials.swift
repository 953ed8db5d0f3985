internal import CLinux
internal import LinuxSystem

/// Who connected, as the kernel vouches for it at the time of connecting.
struct PeerCredentials {
    let process: Int32
    let user: UInt32

    /// Of somebody who is told no, whoever it is: a process without a number, of no user.
    static let unasked = PeerCredentials(process: 0, user: .max)

    private init(process: Int32, user: UInt32) {
        self.process = process
        self.user = user
    }

    /// Asks the kernel about the peer of the socket `descriptor`.
    init(of descriptor: Int32) throws(SystemError) {
        var peer = clinux_peer()
        guard clinux_peer_credentials(descriptor, &peer) == 0 else {
            throw .last("getsockopt", "SO_PEERCRED")
        }
        process = peer.pid
        user = peer.uid
    }
}
