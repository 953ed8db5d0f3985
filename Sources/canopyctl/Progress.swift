internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// A line on the terminal that says for how long something is being waited for.
///
/// It is shown from the second second on, and gone when the wait is over; only where a person sits,
/// which is where standard input and standard error are a terminal: a tool that runs us as its helper
/// may have a screen of its own there.
struct Progress: ~Copyable {
    private let what: StaticString
    private let limit: Int
    private let began = BootTime.now
    private var isShown = false

    /// `limit` is how many seconds the wait may take.
    init(_ what: StaticString, limit: Int) {
        self.what = what
        self.limit = limit
    }

    deinit {
        if isShown { Self.write("") }
    }

    /// How long to wait before the line is to be shown again: to the next whole second.
    var pause: TimeSpan {
        .seconds(1) - TimeSpan(nanoseconds: (.now - began).nanoseconds % 1_000_000_000)
    }

    /// Shows how long it has been; nothing is said to anything but a terminal.
    mutating func show() {
        let elapsed = (BootTime.now - began).wholeSeconds
        guard elapsed > 0, isShown || Self.isWatched else { return }
        isShown = true
        Self.write("\(what), \(elapsed) s of at most \(limit)")
    }

    private static var isWatched: Bool {
        isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1
            && Environment.process["TERM"] != "dumb"
    }

    /// From the line's beginning, over what stood there.
    private static func write(_ text: String) {
        var bytes = Array("\r\u{1B}[K\(text)".utf8)
        // Whoever cannot be told is not told.
        _ = bytes.withUnsafeMutableBytes {
            CLinux.write(STDERR_FILENO, $0.baseAddress, $0.count)
        }
    }
}
