import Foundation
import Glibc
import Testing

/// A notification service of a test's own on a private desktop, which shows nothing and tells what it
/// was asked.
final class NotificationDouble {
    /// What it was asked, and what it said.
    struct Call: Decodable, Equatable {
        let call: String
        let id: UInt32?
        let application: String?
        let summary: String?
        let body: String?
        let icon: String?
        let actions: Int?
        let timeout: Int?
        let urgency: Int?
    }

    private let desktop: PrivateDesktop
    private let program: Program

    /// `capabilities` are what it says that it can do; with `error` it refuses each notice.
    init(
        on desktop: PrivateDesktop, capabilities: [String] = ["body", "body-markup"],
        refusing error: String = ""
    ) throws {
        self.desktop = desktop
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Doubles/notifications.py").standardized.path
        program = try Program(
            "/usr/bin/python3", [script, capabilities.joined(separator: ","), error],
            environment: desktop.environment)
        try eventually("the notification service is ready: \(program.output)") {
            program.output.contains("Ready")
        }
    }

    /// Everything but its readiness, in order.
    func calls() throws -> [Call] {
        try program.output.split(separator: "\n").dropFirst().map {
            try JSONDecoder().decode(Call.self, from: Data($0.utf8))
        }
    }

    func names() throws -> [String] { try calls().map(\.call) }

    func stop() throws { try program.end(by: SIGKILL) }

    /// The user closes everything.
    func dismiss() throws {
        let sender = try Program(
            "/usr/bin/dbus-send",
            [
                "--session", "--print-reply", "--dest=org.freedesktop.Notifications",
                "/org/freedesktop/Notifications", "org.canopyd.Double.Dismiss",
            ], environment: desktop.environment)
        try #require(sender.end() == 0, "\(sender.output)")
    }
}
