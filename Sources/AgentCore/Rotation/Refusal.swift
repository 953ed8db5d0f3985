/// Why a client gets no token.
package enum Refusal: Equatable, Sendable {
    case signInRequired(SignInReason)
    /// `retryAfter` is when the next attempt is due.
    case failed(Failure, retryAfter: TimeSpan)
    /// More validity was asked for than the server gives.
    case validityAboveLifetime(TimeSpan)
}
