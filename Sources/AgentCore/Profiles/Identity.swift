/// Who is signed in, as the server told it at sign-in.
package struct Identity: Equatable, Hashable, Sendable {
    /// The server's id, opaque.
    package let id: String
    package let email: String

    package init(id: String, email: String) {
        self.id = id
        self.email = email
    }
}
