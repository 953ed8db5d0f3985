/// How long an access token is good: an ``AccessToken`` without its value.
package struct AccessTokenLife: Equatable, Sendable {
    package let lifetime: TimeSpan
    package let sent: Stamp
    package let expiry: WallTime?
    package let serverClockOffset: TimeSpan?

    package init(
        lifetime: TimeSpan, sent: Stamp, expiry: WallTime?, serverClockOffset: TimeSpan?
    ) {
        self.lifetime = lifetime
        self.sent = sent
        self.expiry = expiry
        self.serverClockOffset = serverClockOffset
    }

    /// How long the token is still good by the earlier of the two clocks; negative when over.
    ///
    /// Under another boot than the token's own nothing is known of its age, so it counts as over.
    package func remaining(at now: Moment, boot: BootID) -> TimeSpan {
        end(under: boot)?.remaining(at: now) ?? TimeSpan(nanoseconds: -1)
    }

    /// When the token is over; nil under another boot than its own.
    package func end(under boot: BootID) -> End? {
        guard boot == sent.boot else { return nil }
        guard let expiry, let serverClockOffset else {
            return End(boot: sent.moment.boot + lifetime, wall: nil)
        }
        // What `exp` left when the request was sent runs out by the boot clock too: `exp` is in whole
        // seconds, and a wall clock that is set back must not stretch it.
        let left = expiry - (sent.moment.wall + serverClockOffset)
        return End(
            boot: sent.moment.boot + min(lifetime, left), wall: expiry - serverClockOffset)
    }

    /// The end of a token on our two clocks.
    ///
    /// The boot clock counts from the sending of the request. The wall clock counts only where the
    /// server's `Date` has told how far ours is off: a laptop that wakes up in 1970, or in 2040,
    /// must neither hand out a dead token nor throw away a good one.
    package struct End: Equatable, Sendable {
        package let boot: BootTime
        package let wall: WallTime?

        /// How long it is until the first of both; negative when it has come.
        package func remaining(at now: Moment) -> TimeSpan {
            let byBoot = boot - now.boot
            return wall.map { min(byBoot, $0 - now.wall) } ?? byBoot
        }
    }

    /// Whether a client that asks for no particular validity would be given the token.
    package func canServe(at now: Moment, boot: BootID) -> Bool {
        remaining(at: now, boot: boot) >= standardValidity
    }

    /// When it expires, on our wall clock as it was when the token came.
    package var expiresAt: WallTime {
        let byLifetime = sent.moment.wall + lifetime
        guard let expiry, let serverClockOffset else { return byLifetime }
        return min(byLifetime, expiry - serverClockOffset)
    }

    /// The validity that a client gets that does not ask for one: 30 s, or a quarter of the
    /// lifetime where that is less (INTERFACE).
    package var standardValidity: TimeSpan {
        min(.seconds(Int64(Limits.minimumValiditySeconds)), lifetime * 0.25)
    }
}
