internal import AgentCore

/// What was counted of a fleet, second by second.
package struct FleetFigures: Sendable {
    package let plan: FleetPlan

    /// Requests that agents sent, or tried to, and those that were granted.
    package private(set) var requests: [Int32] = []
    package private(set) var grants: [Int32] = []

    /// Changes of the number of agents that back off, and of those without a usable token.
    private var backingOffChanges: [Int32]
    private var tokenlessChanges: [Int32]

    /// Times that an agent woke up by itself, and exchanges that it started.
    package internal(set) var wakeUps = 0
    package internal(set) var exchanges = 0

    /// Seconds from the server's return until the last agent that had failed before was granted a
    /// token, and how many still wait for that.
    package private(set) var lastFresh = 0
    package private(set) var stale = 0

    init(_ plan: FleetPlan) {
        self.plan = plan
        backingOffChanges = Array(repeating: 0, count: Int(plan.length) + 1)
        tokenlessChanges = backingOffChanges
    }

    private static func second(_ time: Int64) -> Int64 { time / 1_000_000_000 }

    private func index(_ time: Int64) -> Int {
        Int(min(max(0, FleetFigures.second(time)), plan.length))
    }

    mutating func note(from before: FleetAgent, to after: FleetAgent, at time: Int64) {
        switch (before.failingSince, after.failingSince) {
        case (nil, nil):
            noteTokenless(before.machine, until: time)
        case (nil, .some):
            backingOffChanges[index(time)] += 1
        case (.some(let since), nil):
            backingOffChanges[index(time)] -= 1
            noteTokenless(before.machine, until: time)
            if index(since) < back { lastFresh = max(lastFresh, index(time) - back) }
        case (.some, .some):
            break
        }
    }

    mutating func noteEnd(of agent: FleetAgent) {
        if let since = agent.failingSince, index(since) < back { stale += 1 }
        noteTokenless(agent.machine, until: plan.length * 1_000_000_000)
    }

    /// A token is of use until a client that asks for nothing in particular is not given it.
    private mutating func noteTokenless(_ machine: RotationMachine, until end: Int64) {
        guard let life = machine.access?.life else { return }
        let usable = life.lifetime - life.standardValidity
        let over = (life.sent.moment.boot + usable).nanoseconds - FleetExchange.uptime
        guard over < end else { return }
        tokenlessChanges[index(over)] += 1
        tokenlessChanges[index(end)] -= 1
    }

    mutating func take(_ server: FleetServer) {
        requests = server.arrivals
        grants = server.grants
    }

    /// How many agents back off, by the second.
    package var backingOff: [Int32] { FleetFigures.sums(backingOffChanges) }

    /// How many agents have no token to give, by the second.
    package var tokenless: [Int32] { FleetFigures.sums(tokenlessChanges) }

    private static func sums(_ changes: [Int32]) -> [Int32] {
        var sum: Int32 = 0
        return changes.dropLast().map { change in
            sum += change
            return sum
        }
    }

    /// When the server returns, in seconds.
    package var back: Int { Int(plan.before + plan.outage) }

    /// From when on a wave is a later one: when those who were the first to be granted a token after
    /// the return begin to ask for the next.
    package var secondWave: Int {
        min(Int(plan.length), back + Int(plan.lifetime) * 3 / 4)
    }

    /// The highest rate from `start` to `end` over `window` seconds, in multiples of the flat rate.
    package func peak(from start: Int, to end: Int, window: Int) -> Double {
        guard end - start >= window else { return 0 }
        var sum = requests[start..<start + window].reduce(0) { $0 + Int($1) }
        var highest = sum
        for second in start..<end - window {
            sum += Int(requests[second + window]) - Int(requests[second])
            highest = max(highest, sum)
        }
        return Double(highest) / Double(window) / plan.flatRate
    }

    /// The largest number of agents without a token at one time.
    package var mostTokenless: Int { Int(tokenless.max() ?? 0) }

    /// Seconds that an agent was without a token, on average over all agents: during the outage, and
    /// after it.
    package var tokenlessSeconds: (during: Double, after: Double) {
        let counts = tokenless
        let during = counts[..<back].reduce(0) { $0 + Int($1) }
        let after = counts[back...].reduce(0) { $0 + Int($1) }
        return (Double(during) / Double(plan.agents), Double(after) / Double(plan.agents))
    }
}
