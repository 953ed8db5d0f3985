internal import Simulation

/// The command line.
struct Options {
    var plan = FleetPlan()

    /// Where the plot of a survey goes; nil for a single run.
    var survey: String?

    /// Returns nil for what is no command line.
    init?(_ arguments: ArraySlice<String>) {
        var rest = arguments
        while let option = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch option {
            case "--seed":
                guard let number = UInt64(value) else { return nil }
                plan.seed = number
            case "--agents":
                guard let number = Int32(value), number > 0 else { return nil }
                plan.agents = Int(number)
            case "--lifetime":
                guard let number = Int64(value), (10...86_400).contains(number) else { return nil }
                plan.lifetime = number
            case "--outage":
                guard let number = Options.seconds(value) else { return nil }
                plan.outage = number
            case "--after":
                guard let number = Options.seconds(value) else { return nil }
                plan.after = number
            case "--capacity":
                guard let number = Double(value), number > 0, number < 1e6 else { return nil }
                plan.capacity = number
            case "--absence":
                guard let refusal = FleetPlan.Refusal(rawValue: value) else { return nil }
                plan.absence = refusal
            case "--overload":
                guard let refusal = FleetPlan.Refusal(rawValue: value) else { return nil }
                plan.overload = refusal
            case "--survey":
                survey = value
            default:
                return nil
            }
        }
    }

    /// Up to four weeks.
    private static func seconds(_ text: String) -> Int64? {
        guard let number = Int64(text), (0...2_419_200).contains(number) else { return nil }
        return number
    }
}
