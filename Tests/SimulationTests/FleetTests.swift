import Simulation
import Testing

/// A fleet that loses its server, in the small: what `scripts/fleet` shows with a million agents.
@Suite("A fleet comes back without a wave", .timeLimit(.minutes(25)))
struct FleetTests {
    /// Five thousand agents send 417 requests a minute: by chance that varies by a seventh.
    private static func plan() -> FleetPlan {
        var plan = FleetPlan()
        plan.seed = 20_261_130
        plan.agents = 5000
        return plan
    }

    private static func peak(_ figures: FleetFigures, from start: Int) -> Double {
        figures.peak(from: start, to: Int(figures.plan.length), window: 60)
    }

    @Test(
        "After an hour without a server the load is under 1.5 times the flat rate, then and later")
    func hour() {
        let figures = Fleet.run(Self.plan())
        #expect(figures.peak(from: 0, to: 900, window: 60) < 1.2)
        #expect(figures.mostTokenless == 5000)
        #expect(Self.peak(figures, from: figures.back) < 1.5)
        #expect(Self.peak(figures, from: figures.secondWave) < 1.5)
        #expect(figures.stale == 0 && figures.lastFresh <= 720)
        #expect(Fleet.run(Self.plan()).requests == figures.requests)
    }

    @Test("A server that bears a fifth more than its everyday load brings everybody back")
    func scarceCapacity() {
        var plan = Self.plan()
        plan.capacity = 1.2
        // A second of so small a fleet is above that by chance now and then, and 30 s is what such a
        // server asks for.
        plan.overload = .told
        let figures = Fleet.run(plan)
        #expect(figures.stale == 0)
        #expect(Self.peak(figures, from: figures.secondWave) < 2)
    }

    @Test("A server that tells everybody the same time is not met by everybody at that time")
    func toldDate() {
        var plan = Self.plan()
        plan.outage = 600
        plan.after = 2700
        plan.absence = .toldDate
        let figures = Fleet.run(plan)
        #expect(Self.peak(figures, from: figures.back) < 2.5)
        #expect(figures.stale == 0)
    }

    @Test("A minute without a server costs hardly any agent its token")
    func minute() {
        var plan = Self.plan()
        plan.outage = 60
        plan.after = 2700
        let figures = Fleet.run(plan)
        #expect(Self.peak(figures, from: figures.back) < 1.75)
        #expect(figures.mostTokenless < 125)
    }

    @Test("With tokens of an hour the wave after the outage is the last")
    func longLifetime() {
        var plan = Self.plan()
        plan.lifetime = 3600
        plan.after = 14_400
        let figures = Fleet.run(plan)
        #expect(figures.stale == 0 && figures.lastFresh <= 900)
        #expect(
            Self.peak(figures, from: figures.secondWave)
                < Self.peak(figures, from: figures.back) / 1.5)
    }

    @Test("An idle agent asks every twelve minutes, or once a day, and wakes up for nothing else")
    func idle() {
        for (isOnDemand, requests) in [(false, 120.0), (true, 1)] {
            var plan = Self.plan()
            plan.agents = 100
            plan.isOnDemand = isOnDemand
            plan.before = 86_400
            plan.outage = 0
            plan.after = 0
            let figures = Fleet.run(plan)
            let count = figures.requests.reduce(0) { $0 + Int($1) }
            #expect(abs(Double(count) / 100 / requests - 1) < 0.02)
            #expect(figures.wakeUps == figures.exchanges)
        }
    }
}
