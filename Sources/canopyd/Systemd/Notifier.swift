internal import AgentCore
internal import CLinux
internal import CSystemd
internal import Glibc
internal import LinuxSystem

/// Tells the service manager how canopyd is; without one, tells nobody.
enum Notifier {
    static func ready(_ status: String) { send("READY=1\nSTATUS=\(line(status))") }

    /// A sentence for `systemctl status`.
    static func status(_ status: String) { send("STATUS=\(line(status))") }

    /// Has to be followed by ``ready(_:)``.
    static func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let microseconds = Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
        send("RELOADING=1\nMONOTONIC_USEC=\(microseconds)")
    }

    static func stopping() { send("STOPPING=1\nSTATUS=Stopping") }

    private static func send(_ message: String) {
        // What the manager does not hear changes nothing here.
        _ = sd_notify(0, message)
    }

    /// A line break would start another assignment.
    private static func line(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }
}
