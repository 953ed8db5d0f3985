internal import Glibc
internal import Simulation

/// Lets a fleet of agents lose its server, and prints what the server sees.
@main
enum CanopyFleet {
    private static let usage = """
        Usage: canopy-fleet [--agents N] [--seed S] [--lifetime SECONDS] [--outage SECONDS]
                            [--after SECONDS] [--capacity TIMES] [--absence KIND] [--overload KIND]
               canopy-fleet --survey FILE.svg [--agents N] [--seed S]

        A million agents, tokens of 900 s, an outage of an hour, 90 minutes after it.
          --capacity TIMES  what the server bears once it is back, in multiples of the flat rate
          --absence KIND    how it is away, and
          --overload KIND   what it answers above its capacity:
        """

    static func main() {
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            print(usage)
            print("    " + FleetPlan.Refusal.allCases.map(\.rawValue).joined(separator: ", "))
            exit(64)
        }
        if let path = options.survey {
            survey(options.plan, path)
        } else {
            run(options.plan)
        }
    }

    private static func run(_ plan: FleetPlan) {
        print("agents            \(plan.agents), seed \(plan.seed)")
        print("lifetime          \(plan.lifetime) s, outage \(plan.outage) s")
        let report = FleetReport(Fleet.run(plan))
        print(report.course)
        print(report.summary)
        for (mode, isOnDemand) in [("ahead", false), ("on demand", true)] {
            let day = FleetReport.idleDay(lifetime: plan.lifetime, isOnDemand: isOnDemand)
            print("an idle day, \(mode): \(day)")
        }
    }

    /// One run: what differs from `base`, and whether it is drawn.
    private struct Case: Sendable {
        let label: String
        var isDrawn = false
        let change: @Sendable (inout FleetPlan) -> Void
    }

    private static let cases = [
        Case(label: "60 min, tokens of 15 min", isDrawn: true) { _ in },
        Case(label: "the same, a server of 2 times the flat rate") { $0.capacity = 2 },
        Case(label: "the same, of 1.2 times, answers 503 above it") { $0.capacity = 1.2 },
        Case(label: "the same, answers 503 with Retry-After") {
            $0.capacity = 1.2
            $0.overload = .told
        },
        Case(label: "the same, answers 429 with Retry-After") {
            $0.capacity = 1.2
            $0.overload = .throttled
        },
        Case(label: "1 min") { $0.outage = 60 },
        Case(label: "5 min") { $0.outage = 300 },
        Case(label: "10 min, tokens of 15 min", isDrawn: true) { $0.outage = 600 },
        Case(label: "20 min") { $0.outage = 1200 },
        Case(label: "60 min, a gateway answers 502") { $0.absence = .gateway },
        Case(label: "60 min, 503 with a date for all", isDrawn: true) {
            $0.absence = .toldDate
        },
        Case(label: "10 min, 503 with a date for all") {
            $0.outage = 600
            $0.absence = .toldDate
        },
        Case(label: "60 min, tokens of 5 min") { $0.lifetime = 300 },
        Case(label: "60 min, tokens of 60 min", isDrawn: true) {
            $0.lifetime = 3600
            $0.before = 3600
            $0.after = 14_400
        },
        Case(label: "60 min, tokens of a day") {
            $0.lifetime = 86_400
            $0.after = 172_800
        },
    ]

    private static func survey(_ base: FleetPlan, _ path: String) {
        var plot = FleetPlot()
        print("| outage | " + FleetReport.columns.joined(separator: " | ") + " |")
        print("|" + String(repeating: " --- |", count: FleetReport.columns.count + 1))
        for item in cases {
            var plan = base
            item.change(&plan)
            let figures = Fleet.run(plan)
            let row = FleetReport(figures).row
            print("| \(item.label) | " + row.joined(separator: " | ") + " |")
            if item.isDrawn { plot.add(item.label, figures) }
        }
        guard write(plot.svg, to: path) else {
            print("cannot write \(path)")
            exit(1)
        }
    }

    private static func write(_ text: String, to path: String) -> Bool {
        guard let file = fopen(path, "w") else { return false }
        let isWritten = fputs(text, file) >= 0
        return fclose(file) == 0 && isWritten
    }
}
