extension RotationMachine {
    /// How long the token in hand serves, and whom.
    package struct Offer: Equatable, Sendable {
        package let end: AccessTokenLife.End
        let standard: TimeSpan
        let attainable: TimeSpan

        /// How long the token is still good, if that is as long as a client wants that wants
        /// `minimumValidity`, or (nil) does not care; nil if it is not.
        package func remaining(ifAtLeast minimumValidity: TimeSpan?, at now: Moment) -> TimeSpan? {
            if let minimumValidity, minimumValidity > attainable { return nil }
            let remaining = end.remaining(at: now)
            let isEnough = remaining > .zero && remaining >= minimumValidity ?? standard
            return isEnough ? remaining : nil
        }
    }
}
