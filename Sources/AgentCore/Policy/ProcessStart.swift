/// When a process was started, read from its `/proc/PID/stat` (proc_pid_stat(5)).
package enum ProcessStart {
    /// What the kernel counts in for programs (`USER_HZ`), on every architecture that systemd knows.
    private static let ticksPerSecond: Int64 = 100

    /// The start as boot time, rounded down to a tick of 10 ms; nil if the text is no such file.
    ///
    /// The second field is the program's own name in parentheses, in which it may write what it
    /// likes: fields are counted from the last parenthesis on.
    package static func time(stat bytes: some BidirectionalCollection<UInt8>) -> BootTime? {
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = bytes[bytes.index(after: end)...].split(separator: UInt8(ascii: " "))
        // The state, the first of them, is field 3; the start is field 22.
        guard fields.indices.contains(19),
            let ticks = Int64(String(decoding: fields[19], as: UTF8.self)), ticks >= 0
        else { return nil }
        let (nanoseconds, overflow) = ticks.multipliedReportingOverflow(
            by: 1_000_000_000 / ticksPerSecond)
        return overflow ? nil : BootTime(nanoseconds: nanoseconds)
    }
}
