import AgentCore
import Testing

@Suite("Suspended and idle machines, in virtual time")
struct SleepTests {
    private static let hour = 3600.0
    private static let day = 86_400.0

    /// Slept for eight hours from the middle of its first token's life on.
    private func slept(seed: UInt64 = 1) -> VirtualAgent {
        let agent = VirtualAgent(seed: seed)
        agent.run(until: 300)
        agent.sleep(until: 300 + 8 * Self.hour)
        return agent
    }

    @Test("C01: after a sleep of 8 hours it rotates within 2 s of the network's return")
    func networkReturns() throws {
        for seed: UInt64 in 1...20 {
            let agent = slept(seed: seed)
            let woken = agent.world.elapsed
            let back = woken + Double(seed) * 7
            agent.cutNetwork { $0 < back ? .notSent("no route") : nil }
            agent.surroundingsChanged()
            agent.run(until: back)
            #expect(agent.presented[0] - woken < 0.1, "the first attempt comes at once")
            agent.surroundingsChanged()
            agent.run(until: back + 2)
            let success = try #require(agent.presented.last)
            #expect(success >= back && agent.machine.session?.generation == 1, "seed \(seed)")
        }
    }

    @Test("C01: a request that comes first after a sleep starts the attempt, and waits for it")
    func requestFirst() {
        // Nobody has said that the machine was asleep.
        let agent = slept()
        #expect(agent.ask() == .wait)
        #expect(agent.machine.step(at: agent.now.boot) == .rotate(mayPresent: true))
        // The same where the sleep began between two attempts.
        let paused = VirtualAgent(seed: 1)
        paused.cutNetwork { $0 < 1000 ? .notSent("no route") : nil }
        paused.run(until: 950)
        guard case .refused = paused.ask() else {
            Issue.record("a token is over and may not be given: \(paused.ask())")
            return
        }
        paused.sleep(until: 950 + 8 * Self.hour)
        #expect(paused.ask() == .wait)
        paused.run(until: paused.world.elapsed + 1)
        #expect(paused.machine.session?.generation == 1)
        guard case .token = paused.ask() else {
            Issue.record("the caller got nothing")
            return
        }
    }

    @Test("C02: without a network after a sleep nothing expired leaves, and its age is told")
    func noNetwork() throws {
        let agent = slept()
        agent.cutNetwork { _ in .notSent("no route") }
        var told: [String] = []
        for second in stride(from: 0.0, to: 2 * Self.hour, by: 10) {
            agent.run(until: 300 + 8 * Self.hour + second)
            switch agent.ask() {
            case .token: Issue.record("an expired token was handed out")
            case .wait: break
            case .refused(let refusal):
                told.append(Refusals.problem(refusal, .standard, keptBy: nil).detail)
            }
        }
        // 300 s before the end of the token's 900 the sleep of 8 h began.
        #expect(try #require(told.first).hasSuffix("; the last token expired 7 h ago"))
        #expect(try #require(told.last).hasSuffix("; the last token expired 9 h ago"))
    }

    @Test("C08: a sleep in the middle of the wait moves nothing: the due time is absolute")
    func dueTime() throws {
        for seed: UInt64 in 1...20 {
            let awake = VirtualAgent(seed: seed)
            awake.run(until: 800)
            let due = try #require(awake.presented.first)
            let sleeper = VirtualAgent(seed: seed)
            sleeper.run(until: 30)
            sleeper.sleep(until: 630)
            sleeper.run(until: 800)
            #expect(abs(try #require(sleeper.presented.first) - due) < 0.001, "seed \(seed)")
            // Slept through it: as soon as somebody is awake.
            let late = VirtualAgent(seed: seed)
            late.run(until: 30)
            late.sleep(until: 830)
            late.run(until: 831)
            #expect(late.presented.first == 830, "seed \(seed)")
        }
    }

    @Test("E09: idle for a day, the token at hand is always younger than its rotation point")
    func idleDay() {
        let agent = VirtualAgent(seed: 7)
        for second in stride(from: 0.0, to: Self.day, by: 61) {
            agent.run(until: second)
            guard case .token(let token) = agent.ask() else {
                Issue.record("no token at \(second) s")
                return
            }
            let age = agent.now.boot - token.life.sent.moment.boot
            #expect(age <= .seconds(765), "85 % of its lifetime")
        }
        #expect(agent.presented.count > 100)
    }

    @Test(
        "H03: without a client for 120 days the refresh token is never old",
        arguments: RotationMachine.Mode.allCases)
    func unused(_ mode: RotationMachine.Mode) {
        let agent = VirtualAgent(seed: 9, mode: mode)
        agent.run(until: 120 * Self.day)
        let gaps = zip([0] + agent.presented, agent.presented).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 <= (mode == .ahead ? 766 : Self.day + 1) })
        #expect(agent.world.elapsed - (agent.presented.last ?? 0) <= Self.day + 1)
        #expect(!agent.world.server.isFamilyEnded && agent.world.violations.isEmpty)
        #expect(agent.machine.session?.generation == Int64(agent.presented.count))
    }
}
