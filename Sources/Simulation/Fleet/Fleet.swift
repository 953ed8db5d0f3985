internal import AgentCore

/// Many agents and one server, in virtual time.
///
/// Each agent is the very machine that canopyd has for a profile, and each attempt the very
/// procedure that canopyd-exchange performs, so that the figures speak of the constants in
/// ``RotationTiming`` and of nothing that was copied from them.
package struct Fleet {
    private let plan: FleetPlan
    private let exchange: FleetExchange
    private var agents: [FleetAgent] = []
    private var queue: EventQueue
    private var figures: FleetFigures

    /// Runs the plan.
    package static func run(_ plan: FleetPlan) -> FleetFigures {
        var fleet = Fleet(plan)
        fleet.run()
        return fleet.figures
    }

    private init(_ plan: FleetPlan) {
        self.plan = plan
        exchange = FleetExchange(plan)
        queue = EventQueue(length: plan.length)
        figures = FleetFigures(plan)
        agents.reserveCapacity(plan.agents)
        for index in 0..<plan.agents {
            let agent = FleetAgent(
                boot: exchange.boot, mode: plan.isOnDemand ? .onDemand : .ahead,
                lifetime: .seconds(plan.lifetime),
                used: exchange.random.draw(), draw: exchange.random.draw())
            agents.append(agent)
            schedule(index)
        }
    }

    private mutating func run() {
        while let event = queue.next() {
            let index = Int(event.agent)
            figures.wakeUps += 1
            switch agents[index].machine.step(at: FleetExchange.moment(event.time).boot) {
            case .nothing:
                break
            case .load:
                preconditionFailure("an agent of a fleet has read its keyring")
            case .rotate(let mayPresent):
                rotate(index, mayPresent, at: event.time)
            }
            schedule(index)
        }
        for agent in agents { figures.noteEnd(of: agent) }
        figures.take(exchange.server)
    }

    private mutating func rotate(_ index: Int, _ mayPresent: Bool, at time: Int64) {
        figures.exchanges += 1
        let before = agents[index]
        var after = exchange.run(before, mayPresent: mayPresent, at: time)
        if case .paused = after.machine.phase {
            if before.failingSince == nil { after.failingSince = exchange.time }
        } else {
            after.failingSince = nil
        }
        figures.note(from: before, to: after, at: exchange.time)
        agents[index] = after
    }

    private mutating func schedule(_ index: Int) {
        guard let due = agents[index].machine.wakeUp else { return }
        queue.add(Int32(index), at: max(0, due.nanoseconds - FleetExchange.uptime))
    }
}
