internal import AgentCore
internal import CLinux
internal import Glibc
internal import Synchronization

/// Writes log lines to standard error, which is the journal's under systemd.
///
/// The message is constant, and what varies is a field: lines can be searched for. No field is a
/// secret.
enum Journal {
    private static let threshold = Atomic(LogLevel.info.priority)

    /// Writes from now on what is at `level`, and what is graver.
    static func write(upTo level: LogLevel) {
        threshold.store(level.priority, ordering: .relaxed)
    }

    static func error(_ message: StaticString, _ fields: (name: StaticString, value: String)...) {
        write(.error, message, fields)
    }

    static func warning(_ message: StaticString, _ fields: (name: StaticString, value: String)...) {
        write(.warning, message, fields)
    }

    static func info(_ message: StaticString, _ fields: (name: StaticString, value: String)...) {
        write(.info, message, fields)
    }

    static func debug(_ message: StaticString, _ fields: (name: StaticString, value: String)...) {
        write(.debug, message, fields)
    }

    /// Whether standard error is the stream that the journal gave us: it reads the priority off
    /// the line's start, where a terminal would show it.
    private static let isJournal: Bool = {
        var status = stat()
        guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else {
            return false
        }
        return String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
    }()

    private static func write(
        _ level: LogLevel, _ message: StaticString, _ fields: [(name: StaticString, value: String)]
    ) {
        guard level.priority <= threshold.load(ordering: .relaxed) else { return }
        var line = isJournal ? "<\(level.priority)>" : "canopyd: \(level.rawValue): "
        line += message.description
        for (index, field) in fields.enumerated() {
            line += index == 0 ? ": " : ", "
            line += "\(field.name)=\(oneLine(field.value))"
        }
        line += "\n"
        // A log that nobody reads must not hold up serving: the line is dropped.
        var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&ready, 1, 0) > 0 else { return }
        line.withUTF8 { bytes in
            // A log that cannot be written is no reason to stop serving.
            _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }

    private static func oneLine(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            result.unicodeScalars.append(
                scalar.value < 0x20 || scalar.value == 0x7F ? " " : scalar)
        }
        return result
    }
}
