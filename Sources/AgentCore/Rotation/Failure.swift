/// Why an exchange brought no new access token, when no new sign-in is needed for it.
package struct Failure: Error, Equatable, Sendable {
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// The request never left: resolving, connecting or TLS failed.
        case notPresented = 1
        /// The request was sent and no whole answer came.
        case noAnswer
        /// 408, 5xx, or a 2xx that makes no sense.
        case serverError
        /// 3xx, or a 4xx that is not Canopy's: a captive portal or a proxy.
        case somebodyInBetween
        /// 429, or 503 with `Retry-After`.
        case throttled
        /// The server answered with its own envelope that it will not.
        case refused
        /// A refresh that brought no refresh token: not a native session.
        case notNative
        case keyringLocked
        case keyringUnavailable
        /// The state directory cannot be read or written; nothing was presented.
        case storageFailed
        /// The successor is in the slot, not yet in the keyring; its access token serves.
        case successorUnstored
        /// Another exchange holds the profile's lock.
        case lockBusy
        /// The exchange could not be started, or ended without a report; it had presented nothing.
        case exchangeFailed
    }

    /// What mends it, where that is something else than the kind says.
    package enum Remedy: UInt8, Sendable, CaseIterable {
        /// What is stored of the profile is of no use: it is forgotten, and signed in anew.
        case signInAnew = 1
        /// The version of canopyd that wrote it, which no command of ours brings back.
        case laterVersion
        /// The Secret Service in place of another back end of libsecret.
        case secretService
        /// Whatever it is, the doctor finds it.
        case examination
    }

    package let kind: Kind

    /// What happened, in a sentence for people: the cause, or the server's own words.
    package let detail: String

    /// For how long nothing is to be presented, where that is known.
    package let wait: TimeSpan?

    /// Why the keyring does not take the successor, for ``Kind/successorUnstored``.
    package let cause: Kind?

    /// nil for what the kind says.
    package let remedy: Remedy?

    package init(
        _ kind: Kind, _ detail: String, wait: TimeSpan? = nil, cause: Kind? = nil,
        remedy: Remedy? = nil
    ) {
        self.kind = kind
        self.detail = detail
        self.wait = wait
        self.cause = cause
        self.remedy = remedy
    }

    /// Whether it is about one item of a keyring that works, and not about the keyring.
    package var isAboutItem: Bool {
        switch remedy {
        case .signInAnew, .laterVersion: true
        case .secretService, .examination, nil: false
        }
    }

    /// What it means while a successor waits for the keyring: that it goes on waiting.
    var asOfUnstored: Failure {
        switch kind {
        case .keyringLocked, .keyringUnavailable:
            Failure(.successorUnstored, detail, wait: wait, cause: kind, remedy: remedyOfUnstored)
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
            .notNative, .storageFailed, .successorUnstored, .lockBusy, .exchangeFailed:
            self
        }
    }

    /// What mends it while a successor waits that nothing else has: it must not be forgotten.
    var remedyOfUnstored: Remedy? { remedy == .signInAnew ? .examination : remedy }
}
