internal import AgentCore
internal import CLibsecret
internal import Glibc

/// One call into libsecret or GLib, under a deadline: neither has one of its own that can be
/// relied on.
enum KeyringCall {
    /// The time that one call to the keyring gets.
    ///
    /// The slowest seen on a loaded machine: 50 ms.
    static let patience = TimeSpan.seconds(5)

    /// After this, somebody is told that a call has not returned: a status is to show a failing
    /// keyring within a second.
    private static let slowness = TimeSpan.milliseconds(700)

    /// How long after its deadline a cancelled call may take to return.
    private static let grace = TimeSpan.seconds(2)

    typealias Cancellable = UnsafeMutablePointer<GCancellable>
    typealias ErrorSlot = UnsafeMutablePointer<GError>?

    /// Runs a call under the deadline.
    ///
    /// nil from `body` means that `error` says why.
    static func bounded<Value>(
        _ body: (Cancellable?, inout ErrorSlot) -> Value?
    ) -> Reading<Value> {
        let deadline = clibsecret_deadline_begin(
            gint64(slowness.nanoseconds / 1000), gint64(patience.nanoseconds / 1000),
            gint64(grace.nanoseconds / 1000), Unresponsive.tell, Unresponsive.end)
        var error: ErrorSlot = nil
        let value = body(deadline?.pointee.cancellable, &error)
        let timedOut = clibsecret_deadline_end(deadline) != 0
        defer { if let error { g_error_free(error) } }
        if let value, error == nil { return .found(value) }
        if timedOut {
            return .failed(
                Failure(
                    .keyringUnavailable,
                    "the keyring did not answer within \(patience.wholeSeconds) s"))
        }
        return .failed(failure(error))
    }

    /// Takes over a string of GLib's.
    static func take(_ text: UnsafeMutablePointer<CChar>?) -> String {
        guard let text else { return "/" }
        defer { g_free(text) }
        return String(cString: text)
    }

    /// Whether it is that no Secret Service is there to answer; else there is no bus, or it says no.
    private static func meansNobody(_ error: ErrorSlot) -> Bool {
        [
            G_DBUS_ERROR_SERVICE_UNKNOWN, G_DBUS_ERROR_NAME_HAS_NO_OWNER, G_DBUS_ERROR_NO_REPLY,
            G_DBUS_ERROR_TIMEOUT, G_DBUS_ERROR_TIMED_OUT, G_DBUS_ERROR_SPAWN_EXEC_FAILED,
            G_DBUS_ERROR_SPAWN_FORK_FAILED, G_DBUS_ERROR_SPAWN_CHILD_EXITED,
            G_DBUS_ERROR_SPAWN_CHILD_SIGNALED, G_DBUS_ERROR_SPAWN_FAILED,
            G_DBUS_ERROR_SPAWN_SERVICE_NOT_FOUND,
        ].contains { g_error_matches(error, g_dbus_error_quark(), gint($0.rawValue)) != 0 }
    }

    private static func failure(_ error: ErrorSlot) -> Failure {
        guard let error else {
            return Failure(
                .keyringUnavailable, "the Secret Service has no default collection")
        }
        let message = String(cString: error.pointee.message)
        if g_error_matches(
            error, secret_error_get_quark(), gint(SECRET_ERROR_IS_LOCKED.rawValue)) != 0
        {
            return SecretServiceConnection.locked
        }
        let isAbsent =
            g_error_matches(
                error, g_dbus_error_quark(), gint(G_DBUS_ERROR_SERVICE_UNKNOWN.rawValue)) != 0
        return Failure(
            .keyringUnavailable,
            isAbsent ? "no program offers the Secret Service on this bus (\(message))" : message,
            remedy: meansNobody(error) ? nil : .examination)
    }
}
