import Foundation

/// What scripts/sanitize builds into every program.
enum Sanitizer {
    static let isOn = ProcessInfo.processInfo.environment["CANOPYD_SANITIZED"] != nil

    /// How many times as long anything may take under it: that long is waited for it.
    static let slowness = isOn ? 10 : 1

    /// What programs that are looked through for leaks have in their environment.
    ///
    /// GLib's small blocks come from a pool of its own, which LeakSanitizer sees as a whole: it is off.
    static let environment = isOn ? ["G_SLICE": "always-malloc"] : [:]
}
