/// The load on the server over time, for several fleets, as an SVG.
package struct FleetPlot {
    private var curves: [(label: String, points: [(minute: Double, times: Double)])] = []

    /// Seconds that one point stands for.
    private static let pointSeconds = 30

    /// What is shown of each run, in minutes from the server's return.
    private static let minutes = -75.0...75

    /// The highest multiple of the flat rate that is shown.
    private static let highest = 5.0

    private static let width = 760.0
    private static let height = 340.0
    private static let left = 50.0
    private static let top = 20.0
    private static let bottom = 40.0
    private static let colours = ["#0b5fa5", "#c2410c", "#3f7d20", "#7a3e9d"]

    package init() {}

    package mutating func add(_ label: String, _ figures: FleetFigures) {
        var points: [(Double, Double)] = []
        let start = max(0, figures.back + Int(FleetPlot.minutes.lowerBound * 60))
        var second = start
        while second + FleetPlot.pointSeconds <= figures.requests.count {
            let slice = figures.requests[second..<second + FleetPlot.pointSeconds]
            let rate = Double(slice.reduce(0) { $0 + Int($1) }) / Double(FleetPlot.pointSeconds)
            let minute = Double(second + FleetPlot.pointSeconds / 2 - figures.back) / 60
            if minute > FleetPlot.minutes.upperBound { break }
            points.append((minute, rate / figures.plan.flatRate))
            second += FleetPlot.pointSeconds
        }
        curves.append((label, points))
    }

    package var svg: String {
        var lines = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Int(FleetPlot.width)) "
                + "\(Int(FleetPlot.height))\" font-family=\"sans-serif\" font-size=\"12\">",
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
        ]
        lines += grid
        for (index, curve) in curves.enumerated() {
            let colour = FleetPlot.colours[index % FleetPlot.colours.count]
            let places = curve.points.map { FleetPlot.place($0.minute, $0.times) }
            lines.append(
                "<polyline fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.5\" "
                    + "points=\"\(places.joined(separator: " "))\"/>")
            let y = Int(FleetPlot.top) + 14 + 18 * index
            lines.append(
                "<rect x=\"60\" y=\"\(y - 4)\" width=\"16\" height=\"3\" fill=\"\(colour)\"/>"
                    + "<text x=\"82\" y=\"\(y)\">\(curve.label)</text>")
        }
        lines.append("</svg>\n")
        return lines.joined(separator: "\n")
    }

    private var grid: [String] {
        var lines: [String] = []
        let right = FleetPlot.width - 10
        for times in 0...Int(FleetPlot.highest) {
            let y = FleetPlot.y(Double(times))
            lines.append(
                "<path d=\"M\(Int(FleetPlot.left)) \(y)H\(Int(right))\" stroke=\"#ddd\"/>"
                    + "<text x=\"\(Int(FleetPlot.left) - 8)\" y=\"\(y)\" dy=\"4\" "
                    + "text-anchor=\"end\">\(times)</text>")
        }
        let goal = FleetPlot.y(1.5)
        lines.append(
            "<path d=\"M\(Int(FleetPlot.left)) \(goal)H\(Int(right))\" stroke=\"#888\" "
                + "stroke-dasharray=\"4 4\"/>")
        for minute in stride(from: -75, through: 75, by: 15) {
            let x = FleetPlot.x(Double(minute))
            let y = Int(FleetPlot.height - FleetPlot.bottom)
            let colour = minute == 0 ? "#888" : "#eee"
            lines.append(
                "<path d=\"M\(x) \(Int(FleetPlot.top))V\(y)\" stroke=\"\(colour)\"/>"
                    + "<text x=\"\(x)\" y=\"\(y + 16)\" text-anchor=\"middle\">\(minute)</text>")
        }
        lines.append(
            "<text x=\"\(Int(FleetPlot.width / 2))\" y=\"\(Int(FleetPlot.height) - 6)\" "
                + "text-anchor=\"middle\">minutes from the server's return; "
                + "requests per second, in multiples of the flat rate</text>")
        return lines
    }

    private static func place(_ minute: Double, _ times: Double) -> String {
        "\(x(minute)),\(y(times))"
    }

    private static func x(_ minute: Double) -> String {
        let span = minutes.upperBound - minutes.lowerBound
        let share = (minute - minutes.lowerBound) / span
        return FleetReport.number(left + share * (width - left - 10), 1)
    }

    private static func y(_ times: Double) -> String {
        let share = min(times, highest) / highest
        return FleetReport.number(height - bottom - share * (height - top - bottom), 1)
    }
}
