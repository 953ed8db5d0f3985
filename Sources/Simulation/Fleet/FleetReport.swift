/// A fleet's figures as text for people.
package struct FleetReport {
    private let figures: FleetFigures
    private let plan: FleetPlan

    /// Seconds in one line of the course.
    private static let lineSeconds = 150

    /// The window of the rates, in seconds: one second of a small fleet is mostly chance, and with
    /// long lifetimes there are few requests.
    private var window: Int { max(10, Int(plan.lifetime) / 90) }

    package init(_ figures: FleetFigures) {
        self.figures = figures
        plan = figures.plan
    }

    /// The course of the run, a line per two and a half minutes.
    package var course: String {
        let backingOff = figures.backingOff
        let tokenless = figures.tokenless
        var lines = ["minutes  requests/s   x flat  backing off  without token"]
        var second = 0
        while second < figures.requests.count {
            let end = min(second + FleetReport.lineSeconds, figures.requests.count)
            let sum = figures.requests[second..<end].reduce(0) { $0 + Int($1) }
            let rate = Double(sum) / Double(end - second)
            let minutes = Double(second - figures.back) / 60
            let cells = [
                (FleetReport.number(minutes, 1), 7), (FleetReport.number(rate, 0), 12),
                (FleetReport.number(rate / plan.flatRate, 2), 9),
                (percent(backingOff[end - 1]), 13), (percent(tokenless[end - 1]), 15),
            ]
            let bar = String(repeating: "#", count: min(60, Int(rate / plan.flatRate * 12)))
            lines.append(cells.map { FleetReport.padded($0.0, $0.1) }.joined() + "  " + bar)
            second = end
        }
        return lines.joined(separator: "\n")
    }

    /// The figures that the constants are judged by.
    package var summary: String {
        """
        flat rate         \(FleetReport.number(plan.flatRate, 1)) requests/s
        peak before       \(times(from: 0, to: Int(plan.before))) times the flat rate
        peak in the outage  \(times(from: Int(plan.before), to: figures.back))
        peak afterwards   \(times(from: figures.back, to: Int(plan.length)))
        peak of later waves  \(times(from: figures.secondWave, to: Int(plan.length)))
        all fresh         \(fresh)
        without a token   \(percent(Int32(figures.mostTokenless))) of the agents at most; \
        on average \(FleetReport.number(figures.tokenlessSeconds.during, 0)) s during the outage, \
        \(FleetReport.number(figures.tokenlessSeconds.after, 0)) s after it
        exchanges         \(figures.exchanges)
        """
    }

    /// The figures as cells of a table, in the order of ``columns``.
    package var row: [String] {
        [
            times(from: Int(plan.before), to: figures.back),
            times(from: figures.back, to: Int(plan.length)),
            times(from: figures.secondWave, to: Int(plan.length)),
            figures.stale == 0 ? "\(figures.lastFresh) s" : "not yet",
            percent(Int32(figures.mostTokenless)),
            FleetReport.number(figures.tokenlessSeconds.after, 0) + " s",
        ]
    }

    package static let columns = [
        "peak in the outage", "peak after it", "later waves", "all fresh after",
        "without a token at most", "and after the return, on average",
    ]

    /// What an agent costs in a day on which nothing is wrong and nobody asks it for anything.
    package static func idleDay(lifetime: Int64, isOnDemand: Bool) -> String {
        var plan = FleetPlan()
        plan.agents = 500
        plan.lifetime = lifetime
        plan.isOnDemand = isOnDemand
        plan.before = 86_400
        plan.outage = 0
        plan.after = 0
        let figures = Fleet.run(plan)
        let requests = figures.requests.reduce(0) { $0 + Int($1) }
        let agents = Double(plan.agents)
        return "\(number(Double(requests) / agents, 1)) requests, "
            + "\(number(Double(figures.wakeUps) / agents, 1)) wake-ups by its timer"
    }

    private func times(from start: Int, to end: Int) -> String {
        FleetReport.number(figures.peak(from: start, to: end, window: window), 2)
    }

    private var fresh: String {
        figures.stale == 0
            ? "\(figures.lastFresh) s after the return" : "\(figures.stale) agents are not yet"
    }

    private func percent(_ count: Int32) -> String {
        FleetReport.number(Double(count) * 100 / Double(plan.agents), 1) + " %"
    }

    /// `value` with so many digits after the point.
    package static func number(_ value: Double, _ digits: Int) -> String {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let scaled = Int((value * scale).rounded())
        guard digits > 0 else { return String(scaled) }
        let sign = scaled < 0 ? "-" : ""
        let whole = String(abs(scaled))
        let padding = String(repeating: "0", count: max(0, digits + 1 - whole.count))
        let text = padding + whole
        return sign + text.dropLast(digits) + "." + text.suffix(digits)
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
