/// A short-lived bearer token, and how long it is good.
package struct AccessToken: Sendable, Equatable {
    package let value: Secret

    /// `token_type` as the server said it; `Bearer` with Canopy.
    package let type: String

    package let life: AccessTokenLife

    package init(value: Secret, type: String, life: AccessTokenLife) {
        self.value = value
        self.type = type
        self.life = life
    }
}
