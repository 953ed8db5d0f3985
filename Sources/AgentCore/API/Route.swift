/// What a request asks for, checked and with its defaults filled in (INTERFACE, "The API").
package enum Route: Equatable, Sendable {
    /// `minimumValidity` nil: the client does not care. `asText`: the bare token and a newline.
    case token(ProfileName, minimumValidity: TimeSpan?, timeout: TimeSpan, asText: Bool)
    case profiles
    case profile(ProfileName)
    case logIn(ProfileName)
    case multiFactor(ProfileName)
    case refresh(ProfileName, ifGeneration: Int64?, timeout: TimeSpan)
    case logOut(ProfileName, isLocal: Bool)
    case identity(ProfileName)
    case sessions(ProfileName)
    case revokeSession(ProfileName, id: String)
    /// nil: the events of all profiles.
    case events(ProfileName?)
    case status
    case metrics

    /// Whether the route reads a request body; for the others a body is read and ignored.
    package var takesBody: Bool {
        switch self {
        case .logIn, .multiFactor: true
        case .token, .profiles, .profile, .refresh, .logOut, .identity, .sessions,
            .revokeSession, .events, .status, .metrics:
            false
        }
    }

    /// The profile whose session the request uses or ends, which is the access policy's to allow.
    ///
    /// A sign-in uses none: it brings a password of its own. States may be seen by all.
    package var usedSession: ProfileName? {
        switch self {
        case .token(let name, _, _, _), .refresh(let name, _, _), .logOut(let name, _),
            .identity(let name), .sessions(let name), .revokeSession(let name, _):
            name
        case .logIn, .multiFactor, .profiles, .profile, .events, .status, .metrics: nil
        }
    }

    /// The profile whose session the request replaces, if there is one.
    package var replacedSession: ProfileName? {
        switch self {
        case .logIn(let name), .multiFactor(let name): name
        case .token, .refresh, .logOut, .identity, .sessions, .revokeSession, .profiles, .profile,
            .events, .status, .metrics:
            nil
        }
    }
}
