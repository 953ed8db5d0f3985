internal import CLinux
internal import CSystemd
internal import Glibc
internal import LinuxSystem

/// The descriptors that the service manager passed at the start.
struct SocketActivation {
    /// Listens for the API; nil if canopyd has to bind its socket itself.
    private(set) var agent: Int32?

    /// Listens for systemd's `LoadCredential=`.
    private(set) var credential: Int32?

    /// What an earlier run left in the descriptor store, by name.
    private(set) var stored: [(name: String, descriptor: Int32)] = []

    /// Takes the descriptors over; a second call finds none.
    ///
    /// Names are those of the socket units (`FileDescriptorName=`, or the unit's own name); without
    /// any, the paths tell. What is not a listening Unix stream socket is not served on: an error in the unit, which is told.
    static func take() throws(Unusable) -> SocketActivation {
        var activation = SocketActivation()
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = sd_listen_fds_with_names(1, &names)
        guard count >= 0 else {
            throw .system(SystemError("sd_listen_fds_with_names", code: -count))
        }
        guard count > 0, let names else { return activation }
        defer {
            for index in 0..<Int(count) { free(names[index]) }
            free(names)
        }
        for index in 0..<Int(count) {
            let descriptor = 3 + Int32(index)
            let name = role(
                of: descriptor, named: names[index].map { String(cString: $0) } ?? nameless)
            switch name {
            case "agent", "agent.sock", "canopyd.socket":
                guard activation.agent == nil else { throw .twice(name) }
                try checkListener(descriptor, name)
                activation.agent = descriptor
            case "credential", "credential.sock", "canopyd-credential.socket":
                guard activation.credential == nil else { throw .twice(name) }
                try checkListener(descriptor, name)
                activation.credential = descriptor
            default:
                // Only files are ever stored: a socket is a socket unit's, under a wrong name.
                guard sd_is_socket(descriptor, AF_UNSPEC, 0, -1) <= 0 else {
                    throw .misnamed(name)
                }
                activation.stored.append((name, descriptor))
            }
        }
        return activation
    }

    /// What sd_listen_fds_with_names(3) says where no names were passed.
    private static let nameless = "unknown"

    /// The name, or what stands for it where whoever started us gave none, as systemd-socket-activate
    /// does unless it is told to: then a socket's path says what it is for.
    private static func role(of descriptor: Int32, named name: String) -> String {
        guard name == nameless, sd_is_socket(descriptor, AF_UNSPEC, 0, -1) > 0 else { return name }
        let path = SocketAddress(of: descriptor)?.path ?? ""
        return path.hasSuffix("/credential.sock") ? "credential" : "agent"
    }

    private static func checkListener(_ descriptor: Int32, _ name: String) throws(Unusable) {
        guard sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 else {
            throw .noListener(name)
        }
        let flags = clinux_fcntl_get_flags(descriptor)
        guard flags >= 0, clinux_fcntl_set_flags(descriptor, flags | O_NONBLOCK) == 0 else {
            throw .system(.last("fcntl", name))
        }
    }

    enum Unusable: Error, CustomStringConvertible {
        case system(SystemError)
        case misnamed(String)
        case noListener(String)
        case twice(String)

        var description: String {
            switch self {
            case .system(let error): "\(error)"
            case .misnamed(let name):
                "the service manager passed a socket named \(name); its socket unit needs "
                    + "FileDescriptorName=agent or FileDescriptorName=credential"
            case .noListener(let name):
                "the descriptor \(name) from the service manager is not a listening Unix stream "
                    + "socket; its socket unit needs ListenStream= with a path"
            case .twice(let name):
                "the service manager passed more than one descriptor named \(name)"
            }
        }
    }
}
