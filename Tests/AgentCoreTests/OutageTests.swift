import AgentCore
import Testing

@Suite("Outages of hours and days, in virtual time")
struct OutageTests {
    /// What a network or a server in trouble may answer with, for hours.
    enum Trouble: String, CaseIterable {
        case noNetwork, noAnswer, serverError, portal, unavailable, nonsense

        var transmission: Transmission {
            switch self {
            case .noNetwork: .notSent("no route")
            case .noAnswer: .lost("reset")
            case .serverError: Example.answer(500, "")
            case .portal: Example.answer(200, "<html>Welcome to the hotel")
            case .unavailable: Example.envelope(503)
            case .nonsense: Example.answer(403, "<html>Blocked by policy")
            }
        }

        /// Requests of one exchange at most: the first, and the quick repetitions of what was sent.
        var requests: Int {
            switch self {
            case .noNetwork: 1
            case .unavailable: 2
            case .noAnswer, .serverError, .portal, .nonsense: 5
            }
        }

        /// How long they take.
        var span: Double {
            switch self {
            case .noNetwork: 0
            case .unavailable: 1
            case .noAnswer, .serverError, .portal, .nonsense: 7.5
            }
        }
    }

    private static let hour = 3600.0
    private static let ceiling = BackOff.server(lifetime: .seconds(900)).ceiling.seconds

    private func gaps(_ times: [Double]) -> [Double] {
        zip(times, times.dropFirst()).map { $1 - $0 }
    }

    @Test(
        "B03: an outage of 48 hours is tried through to its end, never slower than the ceiling",
        arguments: Trouble.allCases)
    func twoDays(_ trouble: Trouble) throws {
        for seed: UInt64 in 1...3 {
            let agent = VirtualAgent(seed: seed)
            let end = 48 * Self.hour
            agent.cutNetwork { $0 < end ? trouble.transmission : nil }
            agent.run(until: end + Self.ceiling + trouble.span + 1)
            let after = try #require(agent.presented.first { $0 >= end }, "seed \(seed)")
            // The last exchange of the outage may have just begun its quick repetitions.
            #expect(after - end <= Self.ceiling + trouble.span, "seed \(seed)")
            #expect(gaps(agent.presented).allSatisfy { $0 <= Self.ceiling + 0.01 }, "seed \(seed)")
            // Whoever came back at once has rotated a second time by now.
            let generation = try #require(agent.machine.session?.generation)
            #expect((1...2).contains(generation), "seed \(seed)")
            #expect(agent.machine.state(at: agent.now) == .active, "seed \(seed)")
            #expect(!agent.world.server.isFamilyEnded && agent.world.violations.isEmpty)
        }
    }

    @Test(
        "B03: an outage of twelve hours ends with one polite request",
        arguments: Trouble.allCases)
    func twelveHours(_ trouble: Trouble) {
        for seed: UInt64 in 1...3 {
            let agent = VirtualAgent(seed: seed)
            let end = 12 * Self.hour
            agent.cutNetwork { $0 < end ? trouble.transmission : nil }
            agent.run(until: end)
            agent.surroundingsChanged()
            agent.run(until: end + 600)
            #expect(agent.presented.count { $0 >= end } == 1, "seed \(seed)")
            #expect(agent.machine.session?.generation == 1, "seed \(seed)")
            #expect(!agent.world.server.isFamilyEnded)
        }
    }

    @Test("B03: clients that ask all through an outage cause not one request more")
    func impatientClients() {
        for seed: UInt64 in 1...2 {
            let counts = [false, true].map { isAsked in
                let agent = VirtualAgent(seed: seed)
                let end = 12 * Self.hour
                agent.cutNetwork { $0 < end ? .lost("reset") : nil }
                var second = 0.0
                while second < end + 600 {
                    second += 7
                    agent.run(until: second)
                    if isAsked { _ = agent.ask() }
                }
                return agent.presented.count { $0 < end }
            }
            #expect(counts[0] == counts[1], "seed \(seed)")
        }
    }

    @Test(
        "B14: a server that always fails is asked as often as the formula says, and no more",
        arguments: Trouble.allCases)
    func hammering(_ trouble: Trouble) {
        // The unluckiest draws first: each wait is a second, and that many exchanges fit.
        for draw in [0, nil] as [Double?] {
            for seed: UInt64 in 1...10 {
                let agent = VirtualAgent(seed: seed)
                agent.draw = draw
                agent.cutNetwork { _ in trouble.transmission }
                agent.run(until: 765)
                let begin = agent.presented[0]
                agent.run(until: begin + 600)
                let atWorst = Double(trouble.requests) * (600 / (trouble.span + 1) + 1)
                #expect(Double(agent.presented.count) <= atWorst, "seed \(seed)")
                if draw == nil {
                    // Waits that triple on the average reach minutes soon.
                    #expect(agent.presented.count <= 40 * trouble.requests, "seed \(seed)")
                }
                let least = trouble == .noNetwork ? 1.0 : 0.5
                #expect(gaps(agent.presented).allSatisfy { $0 >= least }, "seed \(seed)")
            }
        }
    }

    @Test("B15: through an outage shorter than its life, the same token is handed out")
    func sameToken() {
        for trouble in Trouble.allCases {
            let agent = VirtualAgent(seed: 3)
            agent.cutNetwork { $0 < 860 ? trouble.transmission : nil }
            var second = 0.0
            while second < 860 {
                agent.run(until: second)
                // A repetition may have been the one that got through.
                guard agent.world.elapsed < 860 else { break }
                guard case .token(let token) = agent.ask() else {
                    Issue.record("no token at \(second) s of \(trouble)")
                    return
                }
                #expect(text(token.value) == "access-0")
                second += 5
            }
            #expect(agent.presented.count { $0 < 860 } > 0)
            agent.run(until: 860 + Self.ceiling)
            #expect((agent.machine.session?.generation ?? 0) > 0)
        }
    }

    @Test(
        "B12: told to wait 120 s, nobody is asked for 120 to 132 s, restarts or not",
        arguments: ["120", "Mon, 20 Apr 2026 09:02:00 GMT"])
    func toldToWait(_ retryAfter: String) throws {
        for seed: UInt64 in 1...10 {
            for restarts in [false, true] {
                let agent = VirtualAgent(seed: seed)
                agent.world.drawn = Double(seed) / 11
                agent.cutNetwork { _ in nil }
                // A date is told against the server's own, whatever our clock says.
                agent.world.answers = [
                    Example.answer(
                        429, "", retryAfter: retryAfter, date: "Mon, 20 Apr 2026 09:00:00 GMT")
                ]
                agent.run(until: 766)
                let first = agent.presented[0]
                for request in 1...500 {
                    agent.run(until: first + Double(request) * 0.239)
                    if restarts, request % 100 == 0 { agent.restart() }
                    switch agent.ask() {
                    case .token: break
                    case .wait: #expect(restarts && request % 100 == 0, "a caller had to wait")
                    case .refused(.failed(let failure, let wait, _)):
                        #expect(failure.kind == .throttled && wait <= .seconds(132))
                    case .refused(let refusal): Issue.record("\(refusal)")
                    }
                }
                agent.run(until: first + 140)
                try #require(agent.presented.count == 2, "seed \(seed)")
                #expect((120...132.1).contains(agent.presented[1] - first), "seed \(seed)")
                #expect(agent.machine.session?.generation == 1)
            }
        }
    }
}
