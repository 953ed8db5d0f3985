/// Why an access token is over when it comes: its own times and the `Date` of the answer that brought it are not
/// by the same clock.
///
/// Canopyd believes the earlier of them (I6), and cannot mend either. What it can tell is which of the two
/// agrees with this machine's clock, which is a third.
package struct ClockDisagreement: Equatable, Sendable, CustomStringConvertible {
    /// How far the `Date` was ahead of this machine's clock.
    private let date: TimeSpan

    /// How far the clock by which the token was made was ahead of it.
    private let token: TimeSpan

    /// What clocks may differ by and still be said to agree: what most verifiers of tokens allow.
    private static let tolerance = TimeSpan.seconds(300)

    /// Returns nil where the two agree as far as anything shows: another cause is to be told.
    package init?(_ life: AccessTokenLife) {
        guard let expiry = life.expiry, let date = life.serverClockOffset else { return nil }
        let sent = life.sent.moment.wall
        guard expiry <= sent + date else { return nil }
        self.date = date
        token = expiry - (sent + life.lifetime)
    }

    package var description: String {
        let advice =
            if ClockDisagreement.isNothing(token) {
                "look at the server's clock, or a proxy's that writes the date"
            } else if ClockDisagreement.isNothing(date) {
                "look at the clock of the server that makes the tokens"
            } else {
                "look at this machine's clock first, then at the server's"
            }
        return "the access token that came is over already, by the server's own date: that is "
            + ClockDisagreement.told(date) + " this machine's clock, and the token's times are "
            + ClockDisagreement.told(token) + " it; " + advice
    }

    private static func isNothing(_ ahead: TimeSpan) -> Bool {
        max(ahead, .zero - ahead) <= tolerance
    }

    private static func told(_ ahead: TimeSpan) -> String {
        guard !isNothing(ahead) else { return "in step with" }
        return ahead < .zero
            ? "\((.zero - ahead).inWords) behind" : "\(ahead.inWords) ahead of"
    }
}
