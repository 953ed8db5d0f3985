internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Hands access tokens to the units that ask for one with `LoadCredential=PROFILE:SOCKET`.
///
/// The service manager starts a unit with whatever it got before the end of the stream: closing
/// early starts it with an empty credential, and silence holds it up for ever. So nobody is
/// accepted who will not be answered, and the only way to say no is to send more than a credential
/// may have, upon which the manager refuses to start the unit.
final class CredentialSocket {
    private let listener: FileDescriptor
    private let loop: EventLoop
    private let agent: Agent
    private var watch: DescriptorWatch?
    private var deliveries: [ClientID: CredentialDelivery] = [:]
    private var lastNumber = CredentialSocket.firstNumber
    private var isStopping = false

    /// When accepting is tried again after it failed; nil while it works.
    private(set) var wakeUp: BootTime?

    /// Numbers from here on are no connection's of the API.
    private static let firstNumber: UInt64 = 1 << 63

    /// Serves at the socket that the service manager passed.
    ///
    /// Who may connect is the socket's mode to say, and its unit sets it to 0600: this user, and
    /// root, whose manager asks for the units of the system.
    init(inherited descriptor: Int32, _ loop: EventLoop, _ agent: Agent) throws(SystemError) {
        listener = FileDescriptor(owning: descriptor)
        self.loop = loop
        self.agent = agent
        watch = try loop.watch(descriptor, .readable) { [unowned self] _ in accept() }
    }

    private func accept() {
        while deliveries.count < Limits.credentialDeliveries {
            let client = clinux_accept(listener.number)
            if client >= 0 {
                admit(FileDescriptor(owning: client))
            } else if errno != EINTR, errno != ECONNABORTED {
                if errno != EAGAIN {
                    let error = SystemError.last("accept4")
                    Journal.write(.credentialWaits, (.error, "\(error)"))
                    wakeUp = .now + .seconds(Int64(Limits.acceptRetrySeconds))
                    watch?.wait(for: [])
                }
                return
            }
        }
        // The others wait in the kernel's queue, where their units wait with them.
        watch?.wait(for: [])
    }

    private func admit(_ descriptor: consuming FileDescriptor) {
        let address = CredentialSocket.peerAddress(of: descriptor.number)
        let request = CredentialRequest(address: address)
        lastNumber += 1
        let id = ClientID(number: lastNumber)
        do throws(SystemError) {
            let caller = Caller(
                try PeerCredentials(of: descriptor.number), on: descriptor.number, since: .now)
            deliveries[id] = try CredentialDelivery(descriptor, request, caller, loop) {
                [unowned self] in ended(id)
            }
        } catch {
            // The unit starts without its token: epoll took no more, and no answer can be awaited.
            Journal.write(.credentialUndelivered, (.error, "\(error)"))
            return
        }
        guard let request, let profile = request.profile else {
            return answer(id, nil)
        }
        let route = Route.token(
            profile, minimumValidity: nil,
            timeout: .seconds(Int64(Limits.requestTimeoutSeconds)), asText: true)
        if let reply = agent.handle(route, body: nil, from: id) { answer(id, reply) }
    }

    /// Who asks, and as which unit; nil for a client that is none of ours, or gone.
    func caller(of client: ClientID) -> (Caller, AccessPolicy.Way)? {
        guard let delivery = deliveries[client], let request = delivery.request else { return nil }
        return (delivery.caller, .credential(unit: request.unit))
    }

    /// Sends the answer to a unit that waits; false for a client that is none of ours.
    func deliver(_ client: ClientID, _ reply: Reply) -> Bool {
        guard client.number > CredentialSocket.firstNumber else { return false }
        answer(client, reply)
        return true
    }

    /// nil is for what no profile can be asked.
    private func answer(_ client: ClientID, _ reply: Reply?) {
        // A unit that was given up on is nobody.
        guard let delivery = deliveries[client] else { return }
        if let reply, case .line(let token) = reply.body, reply.status == 200 {
            return delivery.send(token)
        }
        // The access policy has told of it already.
        guard reply?.status != Problem.Code.forbidden.status else { return delivery.refuse() }
        Journal.write(
            .credentialRefused, (.unit, delivery.request?.unit ?? "unknown"),
            (.profile, delivery.request?.credential ?? "unknown"),
            (.status, reply.map { "\($0.status)" } ?? "none"))
        delivery.refuse()
    }

    private func ended(_ client: ClientID) {
        deliveries[client] = nil
        agent.clientGone(client)
        if !isStopping, wakeUp == nil { watch?.wait(for: .readable) }
    }

    /// Does what is due.
    func wake(at now: BootTime) {
        guard let due = wakeUp, due <= now else { return }
        wakeUp = nil
        if !isStopping { watch?.wait(for: .readable) }
    }

    /// Lets nobody in any more; refuses those who still wait, so that none starts with nothing.
    func stop() {
        isStopping = true
        watch = nil
        for (client, delivery) in deliveries where delivery.isWaiting { answer(client, nil) }
    }

    /// Whether an answer is still on its way.
    var isSending: Bool { !deliveries.isEmpty }

    private static func peerAddress(of descriptor: Int32) -> [UInt8] {
        var address = sockaddr_un()
        var size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(descriptor, $0, &size)
            }
        }
        guard result == 0 else { return [] }
        let length = Int(size) - MemoryLayout<sa_family_t>.size
        return withUnsafeBytes(of: &address.sun_path) { Array($0.prefix(max(0, length))) }
    }
}
