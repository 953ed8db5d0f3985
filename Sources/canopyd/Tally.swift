internal import AgentCore

/// What exchanges came to and how long they took, for the metrics.
struct Tally {
    private var rotations: [ProfileName: [String: Int64]] = [:]
    private var durations: [JobKind: Histogram] = [:]

    mutating func observe(_ job: JobKind, took duration: TimeSpan) {
        durations[job, default: .exchanges].observe(duration)
    }

    /// Counts the end of a rotation of the profile.
    mutating func count(_ outcome: ExchangeOutcome, of profile: ProfileName) {
        let name: String
        switch outcome {
        case .session(let report): name = report.storeFailure == nil ? "ok" : "unstored"
        case .tooEarly: name = "too_early"
        case .failed(let failure): name = Refusals.code(of: failure).rawValue
        case .signInRequired(let reason, _): name = reason.rawValue
        case .signedOut, .rejected, .challenged, .document: return
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
