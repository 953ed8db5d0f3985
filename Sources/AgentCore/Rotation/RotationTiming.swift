/// How long to wait, and for what.
///
/// All random spread enters as `draw`, a number in 0..<1.
package enum RotationTiming {
    /// The middle of the range that the rotation point is drawn from, as a part of the lifetime.
    package static let meanRotationPoint = 0.80

    /// When a token is rotated, counted from the sending of its request: a uniformly random 75 to
    /// 85 % of its lifetime, so that what signed in together does not return together.
    ///
    /// After an outage (`isRecovery`) all of a fleet has rotated within one ceiling of the back-off.
    /// Where that is less than the time between two rotations, with lifetimes above 19 minutes, the
    /// fleet would return as one wave, again and again; there the range reaches down as far as it
    /// takes to fill that time, once.
    package static func rotationPoint(
        lifetime: TimeSpan, isRecovery: Bool = false, draw: Double
    ) -> TimeSpan {
        let latest = meanRotationPoint + rotationSpread / 2
        var spread = rotationSpread
        if isRecovery {
            let gathered = BackOff.server(lifetime: lifetime).ceiling.seconds / lifetime.seconds
            spread = max(spread, meanRotationPoint - gathered)
        }
        return lifetime * (latest - spread * (1 - draw))
    }

    private static let rotationSpread = 0.10

    /// The least time between two rotations of a profile: 5 s or a tenth of the lifetime; 5 s
    /// where the server sent no access token, so that such a server is not hammered.
    package static func floor(lifetime: TimeSpan?) -> TimeSpan {
        guard let lifetime else { return .seconds(5) }
        return min(.seconds(5), lifetime * 0.1)
    }

    /// For how long a successor is not presented after an ambiguous attempt: 120 s or half of the
    /// lifetime; 120 s where the server sent no access token.
    ///
    /// An old request that is still queued in a proxy arrives before that, or the server would take
    /// it for theft.
    package static func hold(lifetime: TimeSpan?) -> TimeSpan {
        guard let lifetime else { return longestHold }
        return min(longestHold, lifetime * 0.5)
    }

    /// Two minutes: as long as a request may be queued before somebody's own deadline ends it.
    package static let longestHold = TimeSpan.seconds(120)

    /// For how long a successor is not presented after its store where the keyring's owner is not
    /// gnome-keyring: KWallet writes five seconds late.
    package static let lateStoreHold = TimeSpan.seconds(15)

    /// How long such a keyring is given for one write: half of the hold, for in its middle what it was
    /// given is written once more.
    ///
    /// KWallet takes 5 s. KeePassXC begins 0.15 s after a change, derives its key anew, which takes up to
    /// 5 s as its user chooses, and syncs the file; a second change is then saved, too, if the first was not.
    package static let lateWrite = lateStoreHold * 0.5

    /// The waits before the same bytes are sent again after an ambiguous answer.
    ///
    /// The server's grace is "moments": 0.5 + 1 + 2 + 4 s stay within 10.
    package static let quickRetries: [TimeSpan] = [
        .milliseconds(500), .seconds(1), .seconds(2), .seconds(4),
    ]

    /// The same, where an exchange before this one has already failed with these bytes: as long,
    /// with half of the requests.
    ///
    /// The server is known to be in trouble, and repeats five times over whatever it cannot bear.
    package static let laterRetries: [TimeSpan] = [.milliseconds(1500), .seconds(6)]

    /// The wait before the one repetition that a 503 gets which says that the server chose not to
    /// answer: it may have rotated before it gave up.
    package static let unavailableRetry = TimeSpan.seconds(1)

    /// The longest `Retry-After` that is obeyed.
    private static let retryAfterMaximum = TimeSpan.seconds(15 * 60)

    /// What is made of a `Retry-After`: up to 15 min, and some of `spread`, a tenth of it at least, on
    /// top, so that what was told the same does not do the same.
    ///
    /// A 429 is about this client, and a tenth is enough. A 503 is about the server, so every agent
    /// is told the same, often the very moment when it is to be back: its spread is the ceiling of
    /// the back-off, or a maintenance of ten minutes would end with a wave of 28 times the
    /// everyday load.
    package static func obeyed(
        retryAfter: TimeSpan, spread: TimeSpan = .zero, draw: Double
    ) -> TimeSpan {
        let told = min(retryAfterMaximum, max(BackOff.start, retryAfter))
        return told + max(told * 0.1, spread) * draw
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

    /// How long an exchange that may not end tries each second: a desktop that comes back does so in
    /// minutes, and one that has gone for good is not to be woken for; then each
    /// minute.
    package static let lateStoreHaste = TimeSpan.seconds(600)

    /// The wait of an exchange that has been storing for so long.
    package static func storeWait(after age: TimeSpan) -> TimeSpan {
        if age < storePatience { return storeRetry }
        return age < lateStoreHaste ? lateStoreRetry : BackOff.local.ceiling
    }
}
