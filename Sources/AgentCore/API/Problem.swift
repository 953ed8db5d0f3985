/// Why a request is not answered with what it asked for: an RFC 9457 problem object.
package struct Problem: Error, Equatable, Sendable {
    package enum Code: String, Sendable, CaseIterable {
        case badRequest = "bad_request"
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        case payloadTooLarge = "payload_too_large"
        case headerTooLarge = "header_too_large"
        case unknownProfile = "unknown_profile"
        case forbidden
        case signInRequired = "signin_required"
        case credentialsRejected = "credentials_rejected"
        case keyNotNative = "key_not_native"
        case keyringLocked = "keyring_locked"
        case keyringUnavailable = "keyring_unavailable"
        case serverUnreachable = "server_unreachable"
        case serverError = "server_error"
        case refused
        case storageFailed = "storage_failed"
        case throttled
        case timeout
        case tooManyConnections = "too_many_connections"

        /// The HTTP status that goes with the code.
        package var status: Int {
            switch self {
            case .badRequest: 400
            case .signInRequired: 401
            case .forbidden: 403
            case .notFound, .unknownProfile: 404
            case .methodNotAllowed: 405
            case .payloadTooLarge: 413
            case .credentialsRejected, .keyNotNative: 422
            case .keyringLocked: 423
            case .throttled: 429
            case .headerTooLarge: 431
            case .serverError, .refused: 502
            case .keyringUnavailable, .serverUnreachable, .storageFailed, .tooManyConnections: 503
            case .timeout: 504
            }
        }

        /// The same for every problem of the code.
        package var title: StaticString {
            switch self {
            case .badRequest: "The request is malformed"
            case .notFound: "There is no such resource"
            case .methodNotAllowed: "The resource does not take this method"
            case .payloadTooLarge: "The request's body is too large"
            case .headerTooLarge: "The request's head is too large"
            case .unknownProfile: "Nothing is signed in under this name"
            case .forbidden: "The request is not allowed"
            case .signInRequired: "A new sign-in is needed"
            case .credentialsRejected: "The server refused the sign-in"
            case .keyNotNative: "The key does not deliver refresh tokens to programs"
            case .keyringLocked: "The keyring is locked"
            case .keyringUnavailable: "The keyring cannot be used"
            case .serverUnreachable: "The server cannot be reached"
            case .serverError: "The server failed"
            case .refused: "The server refused"
            case .storageFailed: "The state directory cannot be used"
            case .throttled: "The server asked to wait"
            case .timeout: "The answer did not come in time"
            case .tooManyConnections: "There are too many connections"
            }
        }
    }

    package let code: Code

    /// What is wrong with this request, in a sentence.
    package let detail: String
    package let profile: ProfileName?
    package let reason: SignInReason?

    /// Whole seconds, rounded up; also sent as `Retry-After`.
    package let retryAfter: Int64?

    /// A command to type.
    package let fix: String?

    package init(
        _ code: Code, _ detail: String, profile: ProfileName? = nil, reason: SignInReason? = nil,
        retryAfter: Int64? = nil, fix: String? = nil
    ) {
        self.code = code
        self.detail = detail
        self.profile = profile
        self.reason = reason
        self.retryAfter = retryAfter
        self.fix = fix
    }
}
