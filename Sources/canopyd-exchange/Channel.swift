internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// The socket pair to canopyd: one job in, reports out.
///
/// canopyd may be dead by the time a report is written. That is no error: the work goes on, and
/// the next exchange finds what this one stored.
struct Channel: Sendable {
    private let descriptor: Int32
    private let memory: SecretMemory

    init(descriptor: Int32, memory: SecretMemory) {
        self.descriptor = descriptor
        self.memory = memory
    }

    /// Reads the job; nil if canopyd went away, or sent something else.
    func readJob() -> Job? {
        guard let head = read(4), case .length(let length) = head.withBytes(FieldReader.length),
            let body = read(length - 4)
        else { return nil }
        return body.withBytes { Job(decoding: $0, in: memory) }
    }

    func send(_ report: Report) {
        report.encoded(in: memory).withBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = Glibc.send(
                    descriptor, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
                if count < 0 {
                    if errno == EINTR { continue }
                    return
                }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Whether canopyd still holds the other end.
    var isHeard: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) == 0
    }

    private func read(_ count: Int) -> Secret? {
        var isWhole = true
        let secret = Secret(capacity: count, in: memory) { target in
            var done = 0
            while done < count {
                let got = recv(descriptor, target.baseAddress.map { $0 + done }, count - done, 0)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else {
                    isWhole = false
                    break
                }
                done += got
            }
            return done
        }
        return isWhole ? secret : nil
    }
}
