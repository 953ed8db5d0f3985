internal import AgentCore

/// Which token a profile has, as events tell it: another one is a reason to hand it on.
struct Freshness: Equatable {
    let generation: Int64

    /// A new sign-in counts its generations anew.
    private let expiresAt: String

    /// Reads the data of either event; nil while there is no token.
    init?(_ value: JSONValue) {
        guard let generation = value["generation"]?.int,
            let expiresAt = value["expires_at"]?.string
        else { return nil }
        self.generation = generation
        self.expiresAt = expiresAt
    }
}
