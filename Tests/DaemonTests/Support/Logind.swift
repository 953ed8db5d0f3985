import Foundation
import Glibc
import Testing

/// A system bus and a logind of a test's own, with control over both.
///
/// ``PrivateDesktop/environment`` leads programs to this bus, whether it is there or not.
final class Logind {
    enum Operation: String {
        case sleep = "Sleep"
        case shutdown = "Shutdown"
    }

    private let desktop: PrivateDesktop
    private var bus: Program?
    private var double: Program?

    init(_ desktop: PrivateDesktop) throws {
        self.desktop = desktop
        try startBus()
        try start()
    }

    func startBus() throws {
        bus = try desktop.startBus(at: "system-bus")
    }

    func stopBus() throws {
        try bus?.end(by: SIGTERM)
        bus = nil
    }

    /// Starts logind: in the middle of an operation, or refusing inhibitors with an error, if one is
    /// given.
    func start(in operation: Operation? = nil, refusing error: String = "") throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Doubles/logind.py").standardized.path
        let double = try Program(
            "/usr/bin/python3", [script, operation?.rawValue ?? "", error],
            environment: desktop.environment)
        try eventually("logind's double is ready: \(double.output)") {
            double.output.contains("ready")
        }
        self.double = double
    }

    func stop() throws {
        try double?.end(by: SIGKILL)
        double = nil
    }

    /// Stops where it stands, and answers nobody until ``thaw()``.
    func freeze() throws { kill(try #require(double).pid, SIGSTOP) }
    func thaw() throws { kill(try #require(double).pid, SIGCONT) }

    /// Sleep or shutdown begins, or is over, and everybody is told.
    func prepare(_ operation: Operation, _ begins: Bool) throws {
        _ = try ask("Prepare", "string:\(operation.rawValue)", "boolean:\(begins)")
    }

    /// The same, and nobody is told.
    func prepareUntold(_ operation: Operation, _ begins: Bool) throws {
        _ = try ask("PrepareUntold", "string:\(operation.rawValue)", "boolean:\(begins)")
    }

    /// Inhibitors are refused with this error from now on; nil for no longer.
    func refuse(_ error: String?) throws {
        _ = try ask("Refuse", "string:\(error ?? "")")
    }

    /// How many inhibitors are held, and how many were handed out so far.
    func inhibitors() throws -> (held: Int, given: Int) {
        let numbers = try ask("Inhibitors").split(separator: "\n")
            .filter { $0.contains("uint32") }
            .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
        try #require(numbers.count == 2)
        return (numbers[0], numbers[1])
    }

    private func ask(_ method: String, _ arguments: String...) throws -> String {
        let program = try Program(
            "/usr/bin/dbus-send",
            [
                "--system", "--print-reply", "--dest=org.freedesktop.login1",
                "/org/freedesktop/login1", "org.canopyd.Double.\(method)",
            ] + arguments, environment: desktop.environment)
        try #require(program.end() == 0, "logind's double: \(program.output)")
        return program.output
    }
}
