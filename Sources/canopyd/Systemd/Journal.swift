internal import CLinux
internal import Glibc
internal import Synchronization

/// Writes log lines to standard error, which is the journal's under systemd.
///
/// The message is constant, and what varies is a field: lines can be searched for. No field is a
/// secret.
enum Journal {
    enum Level: UInt8, CaseIterable {
        // syslog's numbers.
        case error = 3
        case warning = 4
        case info = 6
        case debug = 7

        init?(_ name: String) {
            guard let level = Level.allCases.first(where: { $0.name == name }) else { return nil }
            self = level
        }

        var name: String {
            switch self {
            case .error: "error"
            case .warning: "warning"
            case .info: "info"
            case .debug: "debug"
            }
        }
    }

    private static let threshold = Atomic(Level.info.rawValue)

    /// The least urgent level that is written.
    static var level: Level {
        get { Level(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
        set { threshold.store(newValue.rawValue, ordering: .relaxed) }
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
        _ level: Level, _ message: StaticString, _ fields: [(name: StaticString, value: String)]
    ) {
        guard level.rawValue <= threshold.load(ordering: .relaxed) else { return }
        var line = isJournal ? "<\(level.rawValue)>" : "canopyd: \(level.name): "
        line += message.description
        for (index, field) in fields.enumerated() {
            line += index == 0 ? ": " : ", "
            line += "\(field.name)=\(oneLine(field.value))"
        }
        line += "\n"
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
