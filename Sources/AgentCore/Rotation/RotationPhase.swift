extension RotationMachine {
    package enum Phase: Equatable, Sendable {
        /// Nothing has been read yet. Leaves on `exchangeBegan`.
        case unread

        /// Nothing is wrong. Leaves when `due` comes, or a client wants more validity.
        case resting(due: BootTime)

        /// An exchange is running. Leaves on `exchangeEnded` or `exchangeDied`.
        case exchanging(Exchange)

        /// The last exchange brought nothing. Leaves when `until` comes, or when the cause may be
        /// gone: a network change, a resume, a keyring event.
        case paused(Pause)

        /// A new sign-in is needed. Leaves on a sign-in, and unless the reason is final on a
        /// keyring event.
        case ended(SignInReason)
    }

    /// A running exchange.
    package struct Exchange: Equatable, Sendable {
        package let job: JobKind
        package let began: BootTime
        /// Whether the exchange has said that it is about to spend the token.
        package var isPresenting = false
        /// Why its last attempt failed, while it tries again by itself.
        package var retrying: Failure?
        /// Whether machine or network have changed meanwhile: what has failed by then, or fails for want of
        /// what was there before, is tried again.
        var sawChange = false
        /// What the phase was before, for jobs that change nothing in it.
        package let before: Standstill

        /// What an end without a report means.
        package func death(_ detail: String) -> Failure {
            Failure(isPresenting ? .noAnswer : .exchangeFailed, detail)
        }

        /// Whether the token that an exchange before has died with is still to be presented again: this one
        /// has only looked, and put the slot in order that was left.
        func leavesRepetition(_ outcome: ExchangeOutcome) -> Bool {
            switch outcome {
            case .session(let report), .tooEarly(let report, _):
                report.isAmbiguous && !isPresenting
            case .failed, .signInRequired, .signedOut, .rejected, .challenged, .document,
                .tokenRefused:
                false
            }
        }
    }

    /// A phase between two exchanges.
    package enum Standstill: Equatable, Sendable {
        case unread
        case resting(due: BootTime)
        case paused(Pause)
        case ended(SignInReason)
    }

    /// When to rotate: INTERFACE, `Mode=`.
    package enum Mode: String, Sendable, CaseIterable {
        case ahead
        case onDemand = "on-demand"
    }
}
