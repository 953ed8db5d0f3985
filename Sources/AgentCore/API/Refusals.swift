/// What clients are told of refusals and failures: code, words, and the command that mends it.
///
/// `keeper` is the program that keeps the secrets, which a command has to fit; nil where none was seen.
package enum Refusals {
    package static func problem(
        _ refusal: Refusal, _ profile: ProfileName, keptBy keeper: KeyringOwner?
    ) -> Problem {
        switch refusal {
        case .signInRequired(let reason):
            return signInRequired(reason, profile)
        case .failed(let failure, let retryAfter, let expired):
            return problem(
                failure, profile, retryAfter: retryAfter, expired: expired, keptBy: keeper)
        case .validityAboveLifetime(let lifetime):
            return Problem(
                .badRequest,
                "min_validity is above the whole lifetime of a token, \(lifetime.wholeSeconds) s when it comes; "
                    + "ask for less",
                profile: profile)
        }
    }

    /// `retryAfter` is when the next attempt is due by itself, nil where none is; `expired` is for
    /// how long the token in hand has been over.
    package static func problem(
        _ failure: Failure, _ profile: ProfileName, retryAfter: TimeSpan? = nil,
        expired: TimeSpan? = nil, keptBy keeper: KeyringOwner?
    ) -> Problem {
        let code = code(of: failure)
        let age = expired.map { "; the last token expired \($0.inWords) ago" } ?? ""
        let wait = failure.kind == .notNative ? nil : retryAfter ?? failure.wait
        return Problem(
            code, failure.detail + age, profile: profile,
            retryAfter: wait.map { max(1, ($0 + TimeSpan(nanoseconds: 999_999_999)).wholeSeconds) },
            fix: fix(failure, code, profile, keptBy: keeper))
    }

    private static func fix(
        _ failure: Failure, _ code: Problem.Code, _ profile: ProfileName,
        keptBy keeper: KeyringOwner?
    ) -> String? {
        switch failure.remedy {
        case .signInAnew:
            let named = profile == .standard ? "" : " --profile \(profile)"
            return "canopyctl logout --local\(named) && \(signingIn(profile))"
        case .laterVersion: return nil
        case .secretService: return KeyringOwner.backEndFix
        case .examination: return examining
        case nil:
            return failure.kind == .exchangeFailed ? examining : fix(code, profile, keptBy: keeper)
        }
    }

    /// The command that finds what is wrong with the machine.
    private static let examining = "canopyctl doctor"

    package static func signInRequired(_ reason: SignInReason, _ profile: ProfileName) -> Problem {
        let detail =
            switch reason {
            case .revokedOrExpired: "the session was revoked or has expired on the server"
            case .rotationLost:
                "the session ended after an answer with its next token was lost on the way"
            case .restoredCopy:
                "the stored session comes from a backup, or belongs to another state directory; "
                    + "using it could end every session of the identity"
            case .otherMachine:
                "the keyring holds the session of another machine, which goes on using it"
            case .keyringReset: "the keyring no longer holds the session: it was reset"
            case .signedOut: "the profile was signed out"
            }
        return Problem(
            .signInRequired, detail, profile: profile, reason: reason,
            fix: fix(.signInRequired, profile))
    }

    package static func unknownProfile(_ profile: ProfileName) -> Problem {
        Problem(
            .unknownProfile,
            "no session is kept under the name \(profile); canopyctl profiles lists the names",
            profile: profile, fix: fix(.unknownProfile, profile))
    }

    package static func problem(_ rejection: Rejection, _ profile: ProfileName) -> Problem {
        switch rejection.kind {
        case .credentials:
            return Problem(
                .credentialsRejected, rejection.detail, profile: profile,
                fix: fix(.credentialsRejected, profile))
        case .keyNotNative:
            return Problem(
                .keyNotNative,
                rejection.detail + "; sign in with a key whose \"Used by\" is Native",
                profile: profile, fix: fix(.keyNotNative, profile))
        case .malformed:
            return Problem(.badRequest, rejection.detail, profile: profile)
        }
    }

    /// The code of a failure; of one to store, what keeps it from being stored.
    package static func code(of failure: Failure) -> Problem.Code {
        switch failure.kind {
        case .successorUnstored: failure.cause.map(code(of:)) ?? .keyringUnavailable
        case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled, .refused,
            .notNative, .keyringLocked, .keyringUnavailable, .storageFailed, .lockBusy,
            .exchangeFailed:
            code(of: failure.kind)
        }
    }

    package static func code(of kind: Failure.Kind) -> Problem.Code {
        switch kind {
        case .notPresented, .noAnswer, .somebodyInBetween: .serverUnreachable
        case .serverError: .serverError
        case .throttled: .throttled
        case .refused: .refused
        case .notNative: .keyNotNative
        case .keyringLocked: .keyringLocked
        case .keyringUnavailable, .successorUnstored: .keyringUnavailable
        case .storageFailed: .storageFailed
        case .lockBusy: .timeout
        // The nearest of the codes that there are: something of ours is wrong on this machine, and
        // nothing was presented.
        case .exchangeFailed: .storageFailed
        }
    }

    /// Asking a running gnome-keyring to unlock does nothing; replacing it does, and makes the login
    /// keyring where there is none.
    package static let unlocking =
        "read -rs p && printf %s \"$p\" | gnome-keyring-daemon --replace --unlock "
        + "--components=secrets"

    /// The command that signs the profile in.
    package static func signingIn(_ profile: ProfileName) -> String {
        profile == .standard ? "canopyctl login" : "canopyctl login --profile \(profile)"
    }

    private static func fix(
        _ code: Problem.Code, _ profile: ProfileName, keptBy keeper: KeyringOwner? = nil
    ) -> String? {
        let named = profile == .standard ? "" : " --profile \(profile)"
        switch code {
        case .unknownProfile, .signInRequired, .credentialsRejected:
            return signingIn(profile)
        case .keyNotNative:
            return "canopyctl login\(named) --key pk_NATIVE_KEY"
        case .keyringLocked:
            return keeper?.unlocking ?? unlocking
        case .keyringUnavailable:
            return keeper?.starting ?? unlocking
        case .serverUnreachable, .serverError, .timeout:
            return "canopyctl status"
        case .refused:
            return "canopyctl refresh\(named)"
        case .badRequest, .notFound, .methodNotAllowed, .payloadTooLarge, .headerTooLarge,
            .forbidden, .storageFailed, .throttled, .tooManyConnections:
            return nil
        }
    }

    /// What a second factor is told that no sign-in waits for.
    package static func noChallenge(_ profile: ProfileName) -> Problem {
        Problem(
            .badRequest, "no sign-in of this profile waits for a second factor; sign in again",
            profile: profile, fix: fix(.signInRequired, profile))
    }

    /// What is told to whoever waits when canopyd is told to stop.
    package static func stopping(_ profile: ProfileName?) -> Problem {
        Problem(
            .timeout, "canopyd stops, and nobody works on the answer any more; ask again",
            profile: profile)
    }

    /// What a client is told whose deadline has come; nil for a profile that was not found yet.
    package static func timeout(_ profile: ProfileName?) -> Problem {
        Problem(
            .timeout, "the answer did not come before the request's deadline; the work goes on",
            profile: profile, fix: "canopyctl status")
    }

    /// What is told of a session that the server will not end, or does not know.
    package static func revocationFailed(
        _ failure: Failure, _ profile: ProfileName, keptBy keeper: KeyringOwner?
    ) -> Problem {
        guard failure.kind == .refused else {
            return problem(failure, profile, keptBy: keeper)
        }
        let named = profile == .standard ? "" : " --profile \(profile)"
        return Problem(
            .refused, failure.detail, profile: profile, fix: "canopyctl sessions\(named)")
    }

    /// What a sign-out that could not reach the server says.
    package static func signOutFailed(
        _ failure: Failure, _ profile: ProfileName, keptBy keeper: KeyringOwner?
    ) -> Problem {
        let named = profile == .standard ? "" : " --profile \(profile)"
        let base = problem(failure, profile, keptBy: keeper)
        switch failure.kind {
        case .notPresented, .noAnswer, .somebodyInBetween, .serverError, .throttled, .refused,
            .notNative:
            return Problem(
                base.code,
                failure.detail
                    + "; nothing was forgotten. With --local it is, and the session stays alive "
                    + "on the server until it expires",
                profile: profile, retryAfter: base.retryAfter,
                fix: "canopyctl logout --local\(named)")
        case .keyringLocked, .keyringUnavailable, .storageFailed, .successorUnstored, .lockBusy,
            .exchangeFailed:
            return base
        }
    }
}

extension TimeSpan {
    /// The span as people say it: seconds, minutes, hours, days, then years, and no smaller unit that
    /// nobody would name with it.
    package var inWords: String {
        let seconds = max(0, wholeSeconds)
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        case ..<63_072_000: "\(seconds / 86_400) days"
        default: "\(seconds / 31_556_952) years"
        }
    }
}
