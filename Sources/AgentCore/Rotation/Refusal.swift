/// Why a client gets no token.
package enum Refusal: Equatable, Sendable {
    case signInRequired(SignInReason)
    /// `retryAfter` is when the next attempt is due; `expired` is for how long the token in hand has
    /// been over, nil where there is none or it is still good.
    case failed(Failure, retryAfter: TimeSpan, expired: TimeSpan?)
    /// More validity was asked for than the server gives.
    case validityAboveLifetime(TimeSpan)
}
