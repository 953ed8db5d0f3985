/// The time for which a session was not rotated although it was due: canopyd was stopped, or the machine
/// was off.
///
/// A server may end what has not been used for long, so whoever runs a machine that is off for weeks is
/// to read of it, and not of a lost session first.
package struct RotationGap: Equatable, Sendable {
    /// Since the last rotation or, if there was none, the sign-in; at least one period.
    package let span: TimeSpan

    /// How many periods have passed in it without a rotation; at least one.
    ///
    /// A period is the longest that a profile in its mode goes without a rotation: the life of its access
    /// token ahead, and a day on demand, or the life if that is longer.
    package let missed: Int64

    /// nil where no whole period has passed, or where it cannot be known: without an access token nothing
    /// tells how long a period is, and a wall clock that is wrong after a boot may say less than it was.
    package init?(
        before now: Moment, of session: SessionHeader, mode: RotationMachine.Mode, boot: BootID
    ) {
        guard let access = session.access, access.lifetime > .zero else { return nil }
        let period: TimeSpan
        switch mode {
        case .ahead: period = access.lifetime
        case .onDemand: period = max(access.lifetime, RotationTiming.onDemandKeepAlive)
        }
        span = (session.lastRotation ?? access.sent).age(at: now, boot: boot)
        missed = span.nanoseconds / period.nanoseconds
        guard missed > 0 else { return nil }
    }
}
