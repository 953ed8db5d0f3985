internal import AgentCore

/// The server that a fleet talks to, as far as its load is concerned: it is there or not, bears so
/// many requests a second, and grants what it bears.
///
/// Which refresh token is good is the other simulation's subject.
struct FleetServer {
    private let plan: FleetPlan
    private let grant: Secret
    private let envelope: Secret
    private let page: Secret

    /// Requests by the second in which they arrived, and those of them that were granted.
    private(set) var arrivals: [Int32]
    private(set) var grants: [Int32]

    private static let latency: Int64 = 100_000_000
    private static let connectPatience: Int64 = 10_000_000_000
    private static let overloadWait: Int64 = 30

    init(_ plan: FleetPlan) {
        self.plan = plan
        grant = Answers.secret(
            Answers.grant(
                refreshToken: 1, accessToken: "o.0", lifetime: plan.lifetime, isWrapped: true))
        envelope = Answers.secret(Answers.envelope(503))
        page = Answers.secret(Answers.portal)
        arrivals = Array(repeating: 0, count: Int(plan.length))
        grants = arrivals
    }

    /// Takes one request at `time`, in nanoseconds since the start; the answer, and how long it
    /// took.
    mutating func answer(at time: Int64) -> (Transmission, took: Int64) {
        let second = Int(time / 1_000_000_000)
        guard second < arrivals.count else { return (.lost("the run is over"), 0) }
        arrivals[second] += 1
        let isAway = Int64(second) >= plan.before && Int64(second) < plan.before + plan.outage
        if isAway {
            return refuse(plan.absence, at: time, until: plan.before + plan.outage)
        }
        guard grants[second] < capacity(of: second) else {
            return refuse(
                plan.overload, at: time, until: Int64(second) + FleetServer.overloadWait)
        }
        grants[second] += 1
        return (answer(200, grant, at: time), FleetServer.latency)
    }

    private func capacity(of second: Int) -> Int32 {
        guard let capacity = plan.capacity, second >= Int(plan.before) else { return .max }
        let rate = capacity * plan.flatRate
        return Int32(rate * Double(second + 1)) - Int32(rate * Double(second))
    }

    private func refuse(
        _ refusal: FleetPlan.Refusal, at time: Int64, until end: Int64
    ) -> (Transmission, took: Int64) {
        let left = max(1, end - time / 1_000_000_000)
        switch refusal {
        case .refused:
            return (.notSent("connection refused"), 1_000_000)
        case .silent:
            return (.notSent("no answer to a connection"), FleetServer.connectPatience)
        case .gateway:
            return (answer(502, page, at: time), FleetServer.latency)
        case .unavailable:
            return (answer(503, envelope, at: time), FleetServer.latency)
        case .told:
            return (
                answer(503, envelope, at: time, retryAfter: String(left)), FleetServer.latency
            )
        case .toldDate:
            let date = Answers.httpDate(SimulatedServer.now(end * 1_000_000_000))
            return (answer(503, envelope, at: time, retryAfter: date), FleetServer.latency)
        case .throttled:
            return (
                answer(429, envelope, at: time, retryAfter: String(left)), FleetServer.latency
            )
        }
    }

    private func answer(
        _ status: Int, _ body: Secret, at time: Int64, retryAfter: String? = nil
    ) -> Transmission {
        .answered(
            CanopyAnswer(status: status, retryAfter: retryAfter, date: nil, body: body))
    }
}
