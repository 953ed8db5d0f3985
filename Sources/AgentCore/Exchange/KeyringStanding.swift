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

    package init(_ state: KeyringState, owner: String?) {
        self.state = state
        self.owner = owner
    }
}
