internal import AgentCore

/// One profile as canopyd reports it.
struct ReportedProfile: Sendable {
    let name: String

    /// nil for a state that this canopyctl does not know.
    let state: ProfileState?

    let stateText: String
    private let reason: SignInReason?
    private let email: String?
    private let generation: Int64?

    /// Seconds from now; negative for what is over.
    private let expiry: Int64?
    private let nextRotation: Int64?

    private let errorCode: String?
    private let errorDetail: String?
    private let errorAge: Int64?

    init(_ value: JSONValue) {
        name = value["profile"]?.string ?? "(unnamed)"
        stateText = value["state"]?.string ?? "unknown"
        state = ProfileState(rawValue: stateText)
        reason = value["reason"]?.string.flatMap { SignInReason(rawValue: $0) }
        email = value["identity"]?["email"]?.string
        generation = value["generation"]?.int
        expiry = Countdown.seconds(to: value["expires_at"]?.string)
        nextRotation = Countdown.seconds(to: value["refresh_at"]?.string)
        let error = value["last_error"]
        errorCode = error?["code"]?.string
        errorDetail = error?["detail"]?.string
        errorAge = Countdown.seconds(to: error?["at"]?.string).map { -$0 }
    }

    var cells: [String] {
        [
            name, stateText, email ?? "–", Self.when(expiry, over: "expired"),
            state == .signInRequired ? "–" : Self.when(nextRotation, over: "now"),
            generation.map { "\($0)" } ?? "–",
        ]
    }

    private static func when(_ seconds: Int64?, over: String) -> String {
        guard let seconds else { return "–" }
        return seconds > 0 ? "in \(Countdown.words(seconds: seconds))" : over
    }

    func paint(_ text: String, _ style: Style) -> String {
        switch state {
        case .active, .refreshing: style.good(text)
        case .degraded, .keyringLocked, nil: style.doubtful(text)
        case .keyringUnavailable, .offline, .refused, .storageFailed, .signInRequired:
            style.alarming(text)
        }
    }

    /// What a request for a token would end with.
    ///
    /// A token that is still good is handed out in every state but `signin_required`.
    var exitCode: ExitCode {
        let hasToken = (expiry ?? 0) > 0
        switch state {
        case .active, .refreshing, .degraded: return .done
        case .keyringLocked, .keyringUnavailable: return hasToken ? .done : .keyring
        case .offline: return .server
        case .refused: return hasToken ? .done : .server
        case .storageFailed: return hasToken ? .done : .failure
        case .signInRequired: return .signInNeeded
        case nil: return .failure
        }
    }

    /// The last error in canopyd's words; nil without one.
    var trouble: String? { errorDetail }

    /// What is not well, and what to do about it; nothing for a profile that is well.
    var explanation: [String] {
        var lines: [String] = []
        if let meaning { lines.append(meaning) }
        if let error { lines.append(error) }
        if let cure { lines.append(cure) }
        return lines
    }

    private var meaning: String? {
        switch state {
        case .active, .refreshing: nil
        case .degraded: "cannot rotate now; the token in hand is good until it expires"
        case .keyringLocked: "the keyring is locked, so nothing can be rotated"
        case .keyringUnavailable:
            "the keyring, or what it keeps of the profile, cannot be used: nothing can be rotated"
        case .offline: "there is no token in hand, and the server cannot be reached"
        case .refused: "the server refused to rotate; the session is kept"
        case .storageFailed:
            "the state directory or canopyd-exchange cannot be used, so nothing is rotated"
        case .signInRequired: reason?.words ?? "the session has ended"
        case nil: "this canopyctl does not know the state; it may be older than canopyd"
        }
    }

    private var error: String? {
        guard let errorCode else { return nil }
        let detail = errorDetail.map { " (\($0))" } ?? ""
        let age = errorAge.map { ", \(Countdown.words(seconds: $0)) ago" } ?? ""
        return "last error: \(errorCode)\(detail)\(age)"
    }

    private var cure: String? {
        switch state {
        case .active, .refreshing, nil: nil
        case .degraded, .offline: "nothing to do: it is tried again by itself"
        case .keyringLocked: "unlock the keyring: everything goes on by itself then"
        case .refused: "see the server's words; try again: canopyctl refresh\(option)"
        // It depends on the cause, which the answer to a request knows.
        case .keyringUnavailable, .storageFailed:
            "what mends it is said by: canopyctl refresh\(option)"
        case .signInRequired: "sign in: canopyctl login\(option)"
        }
    }

    private var option: String {
        name == ProfileName.standard.text ? "" : " --profile \(name)"
    }
}
