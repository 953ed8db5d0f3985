internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// One canopyd-exchange: started for one job, heard until it ends.
///
/// It is killed when its deadline comes, unless it has said that it is about to spend a refresh
/// token: from then on nobody but the kernel ends it.
final class ExchangeProcess {
    /// What is told of it.
    enum News {
        case report(Report)
        /// It is gone and reaped; nothing more will come. The text says how it ended.
        case ended(String)
    }

    /// How long an exchange may take to get ready: the lock 15 s, then connecting to the keyring and
    /// a few calls of 5 s each at the most.
    static let preparationPatience = TimeSpan.seconds(60)

    /// How long a question to the server may take: 10 s to connect, 30 s for the answer, and some.
    static let questionPatience = TimeSpan.seconds(50)

    /// How long an exchange may take to exit after its report.
    static let farewellPatience = TimeSpan.seconds(5)

    /// Not the job itself: a password in it is to be gone once it is sent.
    let kind: JobKind
    private let process: pid_t
    private let channel: FileDescriptor
    private let loop: EventLoop
    private let onNews: (News) -> Void

    private var outgoing: Secret?
    private var sent = 0
    private var incoming: SecretBuffer?
    private var channelWatch: DescriptorWatch?
    private var childWatch: ChildWatch?
    private var mustLive = false
    private var hasReported = false
    private(set) var deadline: BootTime

    /// Starts the executable with the job; `slot` is the profile's, for jobs that need one.
    init(
        _ job: Job, executable: String, slot: SuccessorSlot?, loop: EventLoop,
        onNews: @escaping (News) -> Void
    ) throws(SystemError) {
        kind = job.kind
        self.loop = loop
        self.onNews = onNews
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw .last("socketpair") }
        channel = FileDescriptor(owning: pair[0])
        let theirs = FileDescriptor(owning: pair[1])
        let flags = clinux_fcntl_get_flags(channel.number)
        guard clinux_fcntl_set_flags(channel.number, flags | O_NONBLOCK) == 0 else {
            throw .last("fcntl")
        }
        process = try Spawn.start(
            executable, passing: [theirs.number, slot?.descriptor ?? -1])
        let patience =
            switch job.kind {
            case .identity, .sessions, .revokeSession, .examine:
                ExchangeProcess.questionPatience
            case .load, .rotate, .signIn, .secondFactor, .signOut:
                ExchangeProcess.preparationPatience
            }
        deadline = .now + patience
        outgoing = job.encoded(in: .locked)
        incoming = SecretBuffer(in: .locked)
        channelWatch = try loop.watch(channel.number, [.readable, .writable]) {
            [unowned self] readiness in
            if readiness.contains(.writable) { write() }
            if !readiness.isDisjoint(with: [.readable, .hungUp, .failed]) { read() }
        }
        childWatch = try loop.watch(child: process) { [unowned self] end in
            ended(end)
        }
    }

    // Before its descriptor.
    deinit { channelWatch = nil }

    /// Ends it, unless a refresh token may be spent already.
    ///
    /// Returns whether it was ended.
    func abandon() -> Bool {
        guard !mustLive else { return false }
        // Asked nicely: one that is about to spend a token has stopped listening, whatever we have
        // heard of it so far.
        kill(process, SIGTERM)
        return true
    }

    /// Kills it if its deadline has come.
    func expire(at now: BootTime) {
        guard now >= deadline, !mustLive else { return }
        deadline = .distantFuture
        kill(process, hasReported ? SIGKILL : SIGTERM)
    }

    private func write() {
        guard let message = outgoing else { return }
        message.withBytes { bytes in
            while sent < bytes.count {
                let count = send(
                    channel.number, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
                if count < 0 {
                    if errno == EINTR { continue }
                    // It is full, or the exchange is gone, which its end will tell.
                    return
                }
                sent += count
            }
        }
        if sent == message.count {
            outgoing = nil
            channelWatch?.wait(for: [.readable])
        }
    }

    private func read() {
        let size = Limits.readBytes
        while true {
            var count = 0
            let chunk = Secret(capacity: size, in: .locked) { target in
                count = recv(channel.number, target.baseAddress, size, 0)
                return max(0, count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                if count == 0 || errno != EAGAIN { channelWatch = nil }
                return
            }
            incoming?.append(chunk)
            deliver()
        }
    }

    /// Hands on every whole message that has come.
    private func deliver() {
        guard let buffer = incoming?.secret() else { return }
        let (reports, consumed) = buffer.withBytes { Report.whole(in: $0, memory: .locked) }
        guard consumed > 0 else { return }
        var rest = SecretBuffer(in: .locked)
        buffer.withBytes {
            rest.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[consumed...]))
        }
        incoming = consume rest
        for report in reports {
            if case .progress(.presenting) = report {
                mustLive = true
                deadline = .distantFuture
            }
            if case .ended = report, kind != .load {
                // It has nothing left to do but to go.
                mustLive = false
                hasReported = true
                deadline = .now + ExchangeProcess.farewellPatience
            }
            onNews(.report(report))
        }
    }

    private func ended(_ end: ChildEnd) {
        if channelWatch != nil { read() }
        channelWatch = nil
        childWatch = nil
        let text =
            switch end {
            case .exited(let status): "canopyd-exchange ended with status \(status), unheard"
            case .killed(let number): "canopyd-exchange was ended by signal \(number)"
            }
        onNews(.ended(text))
    }
}
