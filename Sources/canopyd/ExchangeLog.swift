internal import AgentCore

/// The journal's lines about exchanges: quiet while all is well.
enum ExchangeLog {
    /// Writes what the end of an exchange means to somebody who reads the journal; `before` is the
    /// generation that was served when it began.
    static func write(
        _ outcome: ExchangeOutcome, of job: JobKind, for profile: ProfileName,
        before: Generation?
    ) {
        let name = profile.text
        switch outcome {
        case .session(let session):
            let generation = String(session.header.generation)
            if let failure = session.storeFailure {
                Journal.warning(
                    "The keyring does not take the next token; trying on", ("profile", name),
                    ("generation", generation), ("error", failure.detail))
            } else if job == .rotate, session.header.position != before {
                Journal.debug("Rotated", ("profile", name), ("generation", generation))
            } else if job == .signIn || job == .secondFactor {
                Journal.info("Signed in", ("profile", name))
            }
        case .failed(let failure):
            Journal.warning(
                "An exchange failed", ("profile", name),
                ("code", Refusals.code(of: failure).rawValue), ("error", failure.detail))
        case .signInRequired(let reason, let words, _):
            Journal.error(
                "A new sign-in is needed", ("profile", name), ("reason", reason.rawValue),
                ("error", words))
        case .signedOut where job == .signOut:
            Journal.info("Signed out", ("profile", name))
        case .rejected(let rejection):
            Journal.info(
                "A sign-in was refused", ("profile", name), ("error", rejection.detail))
        case .signedOut, .tooEarly, .challenged, .document:
            break
        }
    }
}
