import Foundation

/// What scripts/sanitize builds into every program.
enum Sanitizer {
    static let isOn = ProcessInfo.processInfo.environment["CANOPYD_SANITIZED"] != nil

    /// How many times as long anything may take under it: that long is waited for it.
    static let slowness = isOn ? 10 : 1
}
