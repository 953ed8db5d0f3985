/// How a session hands out its refresh tokens: fixed when it is created, by the key that created
/// it.
package enum Delivery: Sendable, Hashable {
    /// In the JSON body: what a native key asks for.
    case body
    /// As an httpOnly cookie: what a web key asks for.
    case cookie
}
