internal import AgentCore

/// What exchanges came to and how long they took, for the metrics.
struct Tally {
    private var rotations: [ProfileName: [String: Int64]] = [:]
    private var durations: [JobKind: Histogram] = [:]

    mutating func observe(_ job: JobKind, took duration: TimeSpan) {
        durations[job, default: .exchanges].observe(duration)
    }

    /// Counts the end of a rotation of the profile.
    ///
    /// `presented` is whether the exchange presented a token, `isNew` whether it brought a
    /// generation that was not at hand: without having presented anything it was adopted, and with
    /// neither the exchange only looked, or stored what was waiting, which is no rotation.
    mutating func count(
        _ outcome: ExchangeOutcome, of profile: ProfileName, presented: Bool, isNew: Bool
    ) {
        let name: String
        switch outcome {
        case .session where !presented && !isNew: return
        case .session where !presented: name = "adopted"
        case .session(let report): name = report.storeFailure == nil ? "ok" : "unstored"
        case .tooEarly: name = "too_early"
        case .failed(let failure): name = Refusals.code(of: failure).rawValue
        case .signInRequired(let reason, _, _): name = reason.rawValue
        case .signedOut, .rejected, .challenged, .document, .tokenRefused: return
        }
        rotations[profile, default: [:]][name, default: 0] += 1
    }

    /// Nothing is said any more of a profile that is gone.
    mutating func forget(_ profile: ProfileName) {
        rotations[profile] = nil
    }

    /// The rotations by profile and outcome, in a fixed order.
    var rotationsByOutcome: [(ProfileName, String, Int64)] {
        rotations.sorted { $0.key < $1.key }.flatMap { profile, outcomes in
            outcomes.sorted { $0.key < $1.key }.map { (profile, $0.key, $0.value) }
        }
    }

    /// The time that exchanges took, by kind of job, in a fixed order.
    var durationsByJob: [(JobKind, Histogram)] {
        durations.sorted { $0.key.rawValue < $1.key.rawValue }.map { ($0.key, $0.value) }
    }
}
