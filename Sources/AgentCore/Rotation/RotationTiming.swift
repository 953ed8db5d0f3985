/// How long to wait, and for what.
///
/// All random spread enters as `draw`, a number in 0..<1.
package enum RotationTiming {
    /// When a token is rotated, counted from the sending of its request: a uniformly random 75 to
    /// 85 % of its lifetime, so that what signed in together does not return together.
    package static func rotationPoint(lifetime: TimeSpan, draw: Double) -> TimeSpan {
        lifetime * (0.75 + 0.10 * draw)
    }

    /// The least time between two rotations of a profile: 5 s or a tenth of the lifetime; 5 s
    /// where the server sent no access token, so that such a server is not hammered.
    package static func floor(lifetime: TimeSpan?) -> TimeSpan {
        guard let lifetime else { return .seconds(5) }
        return min(.seconds(5), lifetime * 0.1)
    }

    /// For how long a successor is not presented after an ambiguous attempt: 120 s or half of the
    /// lifetime.
    ///
    /// An old request that is still queued in a proxy arrives before that, or the server would take
    /// it for theft.
    package static func hold(lifetime: TimeSpan) -> TimeSpan {
        min(longestHold, lifetime * 0.5)
    }

    /// Two minutes: as long as a request may be queued before somebody's own deadline ends it.
    package static let longestHold = TimeSpan.seconds(120)

    /// For how long a successor is not presented after its store where the keyring's owner is not
    /// gnome-keyring: KWallet writes five seconds late.
    package static let lateStoreHold = TimeSpan.seconds(15)

    /// The waits before the same bytes are sent again after an ambiguous answer.
    ///
    /// The server's grace is "moments": 0.5 + 1 + 2 + 4 s stay within 10.
    package static let quickRetries: [TimeSpan] = [
        .milliseconds(500), .seconds(1), .seconds(2), .seconds(4),
    ]

    /// The wait before the one repetition that a 503 with `Retry-After` gets: the server may have
    /// rotated before it gave up.
    package static let unavailableRetry = TimeSpan.seconds(1)

    package static let backOffStart = TimeSpan.seconds(1)
    package static let backOffCeiling = TimeSpan.seconds(300)

    /// The ceiling while the keyring, or another thing of this machine, is what fails: asking it
    /// costs nobody else.
    package static let keyringBackOffCeiling = TimeSpan.seconds(60)

    /// The next wait after a failure: decorrelated jitter, uniform between the start and three
    /// times the last wait, so that a fleet which lost its server comes back spread out.
    package static func backOff(
        after last: TimeSpan?, draw: Double, ceiling: TimeSpan = backOffCeiling
    ) -> TimeSpan {
        let upper = min(ceiling, (last ?? backOffStart) * 3)
        let spread = max(.zero, upper - backOffStart)
        return backOffStart + spread * draw
    }

    /// What is made of a `Retry-After`: up to 15 min, and a tenth on top so that what was told the
    /// same does not do the same.
    package static func obeyed(retryAfter: TimeSpan, draw: Double) -> TimeSpan {
        min(.seconds(15 * 60), max(.seconds(1), retryAfter)) * (1 + 0.1 * draw)
    }

    /// When a refused rotation is tried again unasked.
    package static let refusedRetry = TimeSpan.seconds(15 * 60)

    /// How often an on-demand profile rotates at the least: a server's idle limit on refresh
    /// tokens is not known, and a day is below all that are.
    package static let onDemandKeepAlive = TimeSpan.seconds(86_400)

    /// For how long storing is tried before the exchange reports with the slot full.
    package static let storePatience = TimeSpan.seconds(5)

    /// The wait between two tries of a store.
    package static let storeRetry = TimeSpan.milliseconds(250)

    /// The same once the patience is over, of an exchange that may not end: a keyring that is unlocked
    /// is to be used within 2 s, and a call takes a millisecond.
    package static let lateStoreRetry = TimeSpan.seconds(1)
}
