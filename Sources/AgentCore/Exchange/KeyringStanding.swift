/// What is known of the Secret Service.
package enum KeyringState: String, Sendable, CaseIterable {
    case ok
    case locked
    case unavailable
}

/// How the keyring is, and who answers for it.
package struct KeyringStanding: Equatable, Sendable {
    package let state: KeyringState

    /// The program that owns the Secret Service, for people; nil where there is none.
    package let owner: String?

    /// The path of a collection that was found locked, to be looked at until it is not; nil where
    /// none was.
    package let collection: String?

    package init(_ state: KeyringState, owner: String?, collection: String? = nil) {
        self.state = state
        self.owner = owner
        self.collection = collection
    }

    /// What the end of an exchange says of the keyring; unchanged where it says nothing.
    package func after(_ outcome: ExchangeOutcome) -> KeyringStanding {
        let failure: Failure
        switch outcome {
        case .failed(let cause): failure = cause
        case .session(let report):
            guard let cause = report.storeFailure else { return KeyringStanding(.ok, owner: owner) }
            failure = cause
        case .tooEarly, .signInRequired, .signedOut, .rejected, .challenged, .document,
            .tokenRefused:
            return self
        }
        return after(failure)
    }

    /// What a failure says of the keyring; unchanged where it says nothing.
    package func after(_ failure: Failure) -> KeyringStanding {
        // One damaged item says nothing of the keyring that sent it.
        if failure.isAboutItem { return self }
        return switch failure.kind {
        case .keyringLocked: KeyringStanding(.locked, owner: owner, collection: collection)
        case .keyringUnavailable: KeyringStanding(.unavailable, owner: owner)
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
            .notNative, .storageFailed, .successorUnstored, .lockBusy, .exchangeFailed:
            self
        }
    }
}
