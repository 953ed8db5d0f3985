/// What was counted in a run.
package struct Figures: Sendable {
    /// Calls of exchanges and events of any other kind.
    package internal(set) var steps = 0
    package internal(set) var episodes = 0
    /// Answers with a successor that an exchange received.
    package internal(set) var rotations = 0
    package internal(set) var presentations = 0
    package internal(set) var exchanges = 0
    package internal(set) var clients = 0
    package internal(set) var tokensServed = 0
    package internal(set) var signIns = 0
    package internal(set) var signOuts = 0
    /// Sessions that were alive and serving at the end of their episode.
    package internal(set) var survived = 0
    /// Sessions that an administrator or the user ended.
    package internal(set) var endedByRight = 0
    /// Sign-ins that are asked for after a restored, reset or deleted home: as designed.
    package internal(set) var refusedByDesign = 0
    /// Times that a replay made the server end every session of the identity.
    package internal(set) var incidents = 0
    package internal(set) var faults = [Int](repeating: 0, count: Fault.allCases.count)
    package internal(set) var losses = [Int](repeating: 0, count: Loss.allCases.count)

    package init() {}

    package mutating func add(_ other: Figures) {
        steps += other.steps
        episodes += other.episodes
        rotations += other.rotations
        presentations += other.presentations
        exchanges += other.exchanges
        clients += other.clients
        tokensServed += other.tokensServed
        signIns += other.signIns
        signOuts += other.signOuts
        survived += other.survived
        endedByRight += other.endedByRight
        refusedByDesign += other.refusedByDesign
        incidents += other.incidents
        for index in faults.indices { faults[index] += other.faults[index] }
        for index in losses.indices { losses[index] += other.losses[index] }
    }

    package func count(_ fault: Fault) -> Int { faults[fault.rawValue] }
    /// Faults that killed a process.
    package var kills: Int {
        Fault.allCases.reduce(0) { $0 + ($1.isKill ? count($1) : 0) }
    }

    package func count(_ loss: Loss) -> Int { losses[loss.rawValue] }

    /// All of it as lines of text.
    package var text: String {
        var lines = [
            "episodes        \(episodes)", "steps           \(steps)",
            "rotations       \(rotations)", "presentations   \(presentations)",
            "exchanges       \(exchanges)", "clients         \(clients)",
            "tokens served   \(tokensServed)", "sign-ins        \(signIns)",
            "sign-outs       \(signOuts)", "sessions alive  \(survived)",
            "ended by right  \(endedByRight)", "refused, as designed  \(refusedByDesign)",
            "identity-wide revocations  \(incidents)",
            "faults          \(faults.reduce(0, +)), of them kills \(kills):",
        ]
        for fault in Fault.allCases where count(fault) > 0 {
            lines.append("  \(fault)  \(count(fault))")
        }
        lines.append("sessions lost, each by a fault that no client can survive:")
        for loss in Loss.allCases where count(loss) > 0 {
            lines.append("  \(loss)  \(count(loss))")
        }
        return lines.joined(separator: "\n")
    }
}
