internal import AgentCore

/// A problem object as canopyd sent it, turned into words and an exit code.
struct ReceivedProblem {
    /// nil for a code that this canopyctl does not know.
    private let code: Problem.Code?
    private let title: String
    private let detail: String?
    private let profile: String?
    private let reason: SignInReason?
    private let retryAfter: Int64?
    private let fix: String?

    init(_ value: JSONValue) {
        code = value["code"]?.string.flatMap { Problem.Code(rawValue: $0) }
        title = value["title"]?.string ?? value["code"]?.string ?? "the request failed"
        detail = value["detail"]?.string
        profile = value["profile"]?.string
        reason = value["reason"]?.string.flatMap { SignInReason(rawValue: $0) }
        retryAfter = value["retry_after"]?.int
        fix = value["fix"]?.string
    }

    var complaint: Complaint {
        Complaint(
            exitCode, what, detail: code == .unknownProfile ? nil : detail,
            cure: fix.map { "try: \($0)" + (alternative ?? "") } ?? ownCure)
    }

    private var what: String {
        var words = code.map { "\($0.title)" } ?? title
        if let first = words.first { words = first.lowercased() + words.dropFirst() }
        if let profile { words = "profile \(profile): \(words)" }
        // canopyd's detail says the same, at more length.
        if let reason, detail?.isEmpty != false { words += ": \(reason.words)" }
        return words
    }

    private var exitCode: ExitCode {
        switch code {
        case .badRequest: .usage
        case .signInRequired, .credentialsRejected, .keyNotNative: .signInNeeded
        case .keyringLocked, .keyringUnavailable: .keyring
        case .serverUnreachable, .serverError, .refused, .throttled: .server
        case .forbidden: .forbidden
        case .unknownProfile: .unknownProfile
        case .timeout: .timeout
        case .notFound, .methodNotAllowed, .payloadTooLarge, .headerTooLarge, .storageFailed,
            .tooManyConnections, nil:
            .failure
        }
    }

    /// What else may mend it.
    ///
    /// A name that is not known may be a slip of the hand. The title says all that the detail does.
    private var alternative: String? {
        code == .unknownProfile ? ", or see the names: canopyctl profiles" : nil
    }

    /// For problems without a `fix`.
    private var ownCure: String? {
        let option = profile.map { $0 == ProfileName.standard.text ? "" : " --profile \($0)" } ?? ""
        return switch code {
        case .unknownProfile: "see: canopyctl profiles  (sign in: canopyctl login\(option))"
        case .signInRequired: "sign in: canopyctl login\(option)"
        case .credentialsRejected: "check the email, the password and the key, then try again"
        case .keyNotNative: "use a publishable key of the kind for native apps"
        case .keyringLocked: "unlock the keyring: everything goes on by itself then"
        case .serverUnreachable, .serverError: "canopyd keeps trying; see: canopyctl status"
        case .refused: "see: canopyctl status"
        case .throttled:
            retryAfter.map { "try again in \(Countdown.words(seconds: $0))" }
                ?? "try again later"
        case .timeout: "the rotation goes on; try again, or wait longer with --timeout"
        case .forbidden: "see the [policy] sections of canopyd.conf"
        case .tooManyConnections: "try again when other programs have closed theirs"
        // The detail says what to do where no command does it.
        case .keyringUnavailable, .storageFailed, .badRequest, .notFound, .methodNotAllowed,
            .payloadTooLarge, .headerTooLarge, nil:
            nil
        }
    }
}

extension SignInReason {
    /// What happened, for people.
    var words: String {
        switch self {
        case .revokedOrExpired: "the session was revoked or has expired"
        case .rotationLost: "a rotation's answer was lost, and the old refresh token is spent"
        case .restoredCopy: "the keyring or the state directory was restored from a copy"
        case .otherMachine: "the session belongs to another machine"
        case .keyringReset: "the keyring no longer holds the session"
        case .signedOut: "the profile was signed out"
        }
    }
}
