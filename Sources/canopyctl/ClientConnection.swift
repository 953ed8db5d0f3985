internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A connection to canopyd for one request, with one deadline for all that happens on it.
struct ClientConnection: ~Copyable {
    let descriptor: Int32
    private let address: SocketAddress
    private let deadline: BootTime
    private let seconds: Int

    /// Connects; `seconds` is what `deadline` was made of, for the words.
    init(to address: SocketAddress, deadline: BootTime, seconds: Int) throws(Complaint) {
        self.address = address
        self.deadline = deadline
        self.seconds = seconds
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else {
            throw Complaint(
                .failure, "no socket can be made", detail: "\(SystemError.last("socket"))")
        }
        // Where the listener's queue is full, connect waits as long as a send may.
        var wait = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        do throws(SystemError) {
            try address.connect(descriptor)
        } catch {
            throw complaint(error)
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    private func complaint(_ failure: SystemError) -> Complaint {
        if failure.code == EAGAIN { return timedOut() }
        return Complaint(
            .daemonNotReached, "canopyd cannot be reached", detail: "\(failure)",
            cure: failure.code == EACCES
                ? "the socket belongs to another user: unset CANOPYD_SOCKET, or run canopyctl as them"
                : "start it: systemctl --user start canopyd  (or run: canopyd)")
    }

    private func timedOut() -> Complaint {
        Complaint(
            .timeout, "canopyd did not answer within \(seconds) s", detail: address.path,
            cure: "see what it does: journalctl --user -u canopyd  "
                + "(restart it: systemctl --user restart canopyd)")
    }

    private func hungUp() -> Complaint {
        Complaint(
            .daemonNotReached, "canopyd closed the connection without a whole answer",
            detail: address.path,
            cure: "it may just have stopped: systemctl --user status canopyd")
    }

    /// Waits until the descriptor is ready for `events`.
    private func wait(_ events: Int32) throws(Complaint) {
        var progress = Progress("waiting for canopyd", limit: seconds)
        while true {
            let left = deadline - .now
            guard left > .zero else { throw timedOut() }
            var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            // Rounded up, so that the last millisecond is not spent turning.
            let pause = min(left, progress.pause).nanoseconds / 1_000_000 + 1
            let ready = poll(&entry, 1, Int32(clamping: pause))
            if ready > 0 { return }
            if ready == 0 { progress.show() }
            let failure = SystemError.last("poll")
            if ready < 0, failure.code != EINTR {
                throw Complaint(
                    .failure, "canopyd cannot be waited for", detail: "\(failure)")
            }
        }
    }

    /// Sends all of `request`.
    ///
    /// That the daemon reads no further is no failure yet: it may have answered already, as it
    /// does with too many connections.
    func write(_ request: borrowing SecretBuffer) throws(Complaint) {
        var done = 0
        while done < request.count {
            let sent = request.withBytes {
                CLinux.send(
                    descriptor, $0.baseAddress.map { $0 + done }, $0.count - done,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if sent >= 0 {
                done += sent
                continue
            }
            let failure = SystemError.last("send", address.path)
            switch failure.code {
            case EAGAIN: try wait(POLLOUT)
            case EINTR: continue
            case EPIPE, ECONNRESET: return
            default:
                throw Complaint(
                    .daemonNotReached, "canopyd cannot be written to", detail: "\(failure)")
            }
        }
    }

    /// Receives the answer, in locked memory from the first byte.
    func answer() throws(Complaint) -> Response {
        var received = ReceivedBytes()
        while true {
            let head: ResponseHead?
            do {
                head = try received.head()
            } catch {
                throw .incomprehensible("\(error)")
            }
            if let head {
                let length = head.status == 204 ? 0 : head.contentLength
                guard let length else { throw .incomprehensible("it does not say how long it is") }
                guard length <= Limits.answerBodyBytes else {
                    throw .incomprehensible(
                        "\(length) bytes are more than \(Limits.answerBodyBytes)")
                }
                received.reserve(head.byteCount + length)
                if received.count >= head.byteCount + length {
                    return Response(head: head, bodyBytes: length, received: received)
                }
            }
            try receive(into: &received)
        }
    }

    /// Takes what has come; false if nothing has, without waiting for it.
    func receiveNow(into received: inout ReceivedBytes) throws(Complaint) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, 0) > 0 else { return false }
        try receive(into: &received)
        return true
    }

    /// Waits for the head of an answer whose body has no end.
    func head(into received: inout ReceivedBytes) throws(Complaint) -> ResponseHead {
        while true {
            do {
                if let head = try received.head() { return head }
            } catch {
                throw .incomprehensible("\(error)")
            }
            try receive(into: &received)
        }
    }

    func receive(into received: inout ReceivedBytes) throws(Complaint) {
        received.makeRoom()
        while true {
            let count = recv(
                descriptor, received.free.baseAddress, received.free.count,
                Int32(MSG_DONTWAIT))
            if count > 0 {
                received.count += count
                return
            }
            guard count < 0 else { throw hungUp() }
            let failure = SystemError.last("recv", address.path)
            switch failure.code {
            case EAGAIN: try wait(POLLIN)
            case EINTR: continue
            case ECONNRESET: throw hungUp()
            default:
                throw Complaint(
                    .daemonNotReached, "canopyd cannot be read from", detail: "\(failure)")
            }
        }
    }
}
