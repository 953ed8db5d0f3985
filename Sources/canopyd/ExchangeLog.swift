internal import AgentCore

/// The journal's lines about exchanges: quiet while all is well, and while nothing changes.
enum ExchangeLog {
    /// What an outage is told once for.
    enum Complaint: Hashable {
        case failed(Problem.Code)
        /// The only copy of a successor is in memory.
        case unstored(Problem.Code)
    }

    /// Writes what the end of an exchange means to somebody who reads the journal; `before` is the
    /// generation that was served when it began, nil if this is the first that is read.
    static func write(
        _ outcome: ExchangeOutcome, of job: JobKind, for profile: ServedProfile,
        before: Generation?, took duration: TimeSpan, at now: Moment
    ) {
        let name = profile.name.text
        let seconds = (JournalField.duration, text(duration))
        switch outcome {
        case .session(let session):
            if before == nil { reportGap(before: now, of: session.header, profile) }
            let generation = (JournalField.generation, String(session.header.generation))
            if let failure = session.storeFailure {
                let code = Refusals.code(of: failure)
                guard profile.complaints.insert(.unstored(code)).inserted else { return }
                Journal.write(
                    .successorUnstored, (.profile, name), generation, (.code, code.rawValue),
                    (.error, failure.detail), seconds)
                return
            }
            recovered(profile)
            if job == .rotate, session.header.position != before {
                Journal.write(.rotated, (.profile, name), generation, seconds)
            } else if job == .signIn || job == .secondFactor {
                Journal.write(.signedIn, (.profile, name), generation, seconds)
            }
        case .tokenRefused(let words):
            // It is renewed, or whoever asked is told.
            Journal.write(
                .exchangeFailing, (.profile, name), (.code, Problem.Code.refused.rawValue),
                (.error, words), seconds)
        case .failed(let failure) where failure.kind == .refused && job.isQuestion:
            // Whoever asked is told; the session is as well as it was.
            Journal.write(
                .exchangeFailing, (.profile, name), (.code, Problem.Code.refused.rawValue),
                (.error, failure.detail), seconds)
        case .failed(let failure):
            let code = Refusals.code(of: failure)
            let isNews = profile.complaints.insert(.failed(code)).inserted
            let event: JournalEvent = isNews ? .exchangeFailed : .exchangeFailing
            Journal.write(
                event, (.profile, name), (.code, code.rawValue), (.error, failure.detail), seconds)
        case .signInRequired(let reason, let words, _):
            profile.complaints = []
            Journal.write(
                .signInRequired, (.profile, name), (.reason, reason.rawValue),
                (.code, Problem.Code.signInRequired.rawValue), (.error, words), seconds)
        case .signedOut where job == .signOut:
            Journal.write(.signedOut, (.profile, name), seconds)
        case .rejected(let rejection):
            Journal.write(
                .signInRefused, (.profile, name), (.error, rejection.detail), seconds)
        case .signedOut, .tooEarly, .challenged, .document:
            recovered(profile)
        }
    }

    /// Nobody else could: while canopyd or the machine was off, nobody was there to write.
    private static func reportGap(
        before now: Moment, of session: SessionHeader, _ profile: ServedProfile
    ) {
        let gap = RotationGap(
            before: now, of: session, mode: profile.machine.mode, boot: profile.boot)
        guard let gap else { return }
        Journal.write(
            .rotationsMissed, (.profile, profile.name.text),
            (.generation, String(session.generation)), (.duration, text(gap.span)),
            (.missed, String(gap.missed)))
    }

    private static func recovered(_ profile: ServedProfile) {
        guard !profile.complaints.isEmpty else { return }
        profile.complaints = []
        Journal.write(.recovered, (.profile, profile.name.text))
    }

    private static func text(_ duration: TimeSpan) -> String {
        let milliseconds = max(0, duration.nanoseconds) / 1_000_000
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000)."
            + String(repeating: "0", count: 3 - fraction.utf8.count) + fraction
    }
}
