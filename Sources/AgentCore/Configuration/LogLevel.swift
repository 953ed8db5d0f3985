/// How much is logged: what is at the level, and what is graver.
package enum LogLevel: String, Comparable, CaseIterable, Sendable {
    case error
    case warning
    case info
    case debug

    /// The level's number in syslog(3), which is also systemd's `<N>` prefix.
    package var priority: Int {
        switch self {
        case .error: 3
        case .warning: 4
        case .info: 6
        case .debug: 7
        }
    }

    /// The graver level is the lesser.
    package static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.priority < right.priority
    }
}
