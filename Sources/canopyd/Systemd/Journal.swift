internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem
internal import Synchronization

/// Writes the log: to the journal with fields where systemd gave us one, else to standard error.
///
/// The message is constant, and what varies is a field: lines can be searched for. No field is a
/// secret.
enum Journal {
    private static let threshold = Atomic(LogLevel.info.priority)
    private static let budget = Mutex(LogBudget())

    /// Writes from now on what is at `level`, and what is graver.
    static func write(upTo level: LogLevel) {
        threshold.store(level.priority, ordering: .relaxed)
    }

    /// Whether lines of this kind are written at all.
    static func writes(_ event: JournalEvent) -> Bool {
        event.level.priority <= threshold.load(ordering: .relaxed)
    }

    /// Writes a line, unless its kind has been written too often already.
    static func write(_ event: JournalEvent, _ fields: (JournalField, String)...) {
        write(event, fields)
    }

    /// The same, of fields that belong together.
    static func write(_ event: JournalEvent, _ fields: [(JournalField, String)]) {
        guard writes(event) else { return }
        switch budget.withLock({ $0.decide(event, at: .now) }) {
        case .suppress:
            return
        case .write(let suppressed):
            let count = suppressed > 0 ? [(JournalField.suppressed, "\(suppressed)")] : []
            let line = JournalLine(event, fields + count)
            if let socket, send(line.datagram, on: socket) { return }
            print(line)
        }
    }

    // MARK: The journal

    /// Whether standard error is the stream that the journal gave us.
    private static let isJournal: Bool = {
        var status = stat()
        guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else {
            return false
        }
        return String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
    }()

    /// A socket of our own: `sd_journal_send` waits for a journal that is stuck, and we must not.
    private static let socket: Int32? = {
        guard isJournal else { return nil }
        let kind = SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let descriptor = Glibc.socket(AF_UNIX, Int32(kind), 0)
        return descriptor >= 0 ? descriptor : nil
    }()

    /// Sends the line to the journal; false if there is none.
    ///
    /// One that reads too slowly loses it.
    private static func send(_ datagram: [UInt8], on socket: Int32) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) {
            // It fits, and leaves the final NUL.
            $0.copyBytes(from: "/run/systemd/journal/socket".utf8)
        }
        let count = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    socket, datagram, datagram.count, Int32(MSG_NOSIGNAL), $0,
                    socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return count >= 0 || errno == EAGAIN
    }

    // MARK: Standard error

    private static func print(_ line: JournalLine) {
        // The journal reads the priority off the line's start, where a terminal would show it.
        let level = line.event.level
        var text = isJournal ? "<\(level.priority)>" : "canopyd: \(level.rawValue): "
        text += line.text + "\n"
        // A log that nobody reads must not hold up serving: the line is dropped.
        var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&ready, 1, 0) > 0 else { return }
        text.withUTF8 { bytes in
            // A log that cannot be written is no reason to stop serving.
            _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }
}
