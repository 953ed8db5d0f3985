import AgentCore
import Testing

@Suite("Back-off is spread, grows, and stays within its bounds")
struct BackOffTests {
    private static let draws = [0, 0.25, 0.5, 0.75, 0.999_999_999]
    private static let all =
        [BackOff.local, .server(lifetime: nil)]
        + [60, 900, 3600].map { BackOff.server(lifetime: .seconds($0)) }

    @Test("The ceiling is the time between two rotations, from 5 to 15 minutes")
    func ceiling() {
        for (lifetime, ceiling) in [
            (1, 300), (375, 300), (450, 360), (900, 720), (1125, 900), (3600, 900),
            (86_400, 900),
        ] as [(Int64, Int64)] {
            #expect(BackOff.server(lifetime: .seconds(lifetime)).ceiling == .seconds(ceiling))
        }
        #expect(BackOff.server(lifetime: nil).ceiling == .seconds(300))
    }

    @Test("No wait is under a second or over the ceiling, and none outgrows its limit")
    func bounds() {
        for backOff in Self.all {
            for longest in [nil, 0.5, 1, 10, 99, 224.9, 225, 300, 540, 1e6] as [Double?] {
                for draw in Self.draws {
                    let longest = longest.map(Example.span)
                    let wait = backOff.wait(after: longest, draw: draw)
                    #expect(wait >= BackOff.start && wait <= backOff.ceiling)
                    #expect(wait <= max(longest ?? .zero, BackOff.start) * backOff.growth)
                    let next = backOff.longest(longest, wait: wait)
                    #expect(next >= wait && next <= backOff.ceiling)
                }
            }
        }
    }

    @Test("At the ceiling it stays there, spread over its upper quarter")
    func steady() {
        for backOff in Self.all {
            #expect(backOff.wait(after: backOff.ceiling, draw: 0) == backOff.ceiling * 0.75)
            let most = backOff.wait(after: backOff.ceiling, draw: 0.999_999)
            #expect(most > backOff.ceiling * 0.999)
        }
    }

    @Test("A token that still serves is used up before anybody hurries, and never overrun")
    func leisure() {
        let backOff = BackOff.server(lifetime: .seconds(900))
        for draw in Self.draws {
            let first = backOff.wait(after: nil, leisure: .seconds(150), draw: draw)
            #expect(first == .seconds(1) + .seconds(149) * draw)
            let long = backOff.wait(after: nil, leisure: .seconds(17_000), draw: draw)
            #expect(long == .seconds(1) + .seconds(16_999) * draw)
        }
        #expect(
            backOff.longest(nil, wait: .seconds(2), leisure: .seconds(150)) == .seconds(150))
        #expect(
            backOff.longest(nil, wait: .seconds(2), leisure: .seconds(17_000))
                == backOff.ceiling)
    }
}
