/// What an exchange is started for.
package enum JobKind: UInt8, Sendable, CaseIterable {
    case load = 1
    case signIn
    case rotate
    case signOut
    case identity
    case sessions
    case revokeSession
    case secondFactor
    /// For the doctor, who starts it without canopyd.
    case examine

    /// Whether it asks something of the server that changes nothing in the profile.
    package var isQuestion: Bool {
        switch self {
        case .identity, .sessions, .revokeSession: true
        case .load, .signIn, .rotate, .signOut, .secondFactor, .examine: false
        }
    }
}
