import AgentCore
import Testing

@Suite("How long a session was not rotated is told when canopyd starts")
struct RotationGapTests {
    private static let day = 86_400.0

    /// The gap `seconds` after a rotation of the boot `boot`, seen in the present one.
    private func gap(
        _ seconds: Double, lifetime: Double = 900, mode: RotationMachine.Mode = .ahead,
        boot: BootID = Example.boot, sinceBoot: Double? = nil, wallStep: Double = 0
    ) -> RotationGap? {
        let header = Example.header(
            3, lastRotation: Example.stamp(boot: boot), access: Example.life(lifetime, boot: boot))
        let then = Example.moment(seconds, wallStep: wallStep)
        let now =
            sinceBoot.map { Moment(boot: BootTime(nanoseconds: Int64($0 * 1e9)), wall: then.wall) }
            ?? then
        return RotationGap(before: now, of: header, mode: mode, boot: Example.boot)
    }

    @Test("H03: what was off for 40 days says so, and how many rotations that were")
    func off() throws {
        let found = try #require(
            gap(40 * Self.day, boot: Example.otherBoot, sinceBoot: 12))
        #expect(found.span == .seconds(40 * 86_400))
        #expect(found.missed == 40 * 96)
    }

    @Test("Within a period nothing was missed, and a token's whole life is one")
    func period() {
        #expect(gap(0) == nil)
        #expect(gap(899.9) == nil)
        #expect(gap(900)?.missed == 1)
        #expect(gap(2699)?.missed == 2)
    }

    @Test("On demand a period is a day, or a token's life if that is longer")
    func onDemand() {
        #expect(gap(Self.day - 1, mode: .onDemand) == nil)
        #expect(gap(2 * Self.day, mode: .onDemand)?.missed == 2)
        #expect(gap(2 * Self.day, lifetime: 3 * Self.day, mode: .onDemand) == nil)
    }

    @Test("A session that was never rotated counts from its sign-in")
    func neverRotated() {
        let header = Example.header(access: Example.life(900, sent: -1800))
        let gap = RotationGap(
            before: Example.moment(0), of: header, mode: .ahead, boot: Example.boot)
        #expect(gap?.missed == 2)
    }

    @Test("What cannot be known is not told: no access token, or a clock that is behind")
    func unknown() {
        let header = Example.header(3, lastRotation: Example.stamp(), access: nil)
        #expect(
            RotationGap(
                before: Example.moment(9000), of: header, mode: .ahead, boot: Example.boot) == nil)
        #expect(
            gap(9000, boot: Example.otherBoot, sinceBoot: 12, wallStep: -1_000_000_000) == nil)
        // That it was at least as long as the boot clock has gone on for, is known.
        #expect(
            gap(9000, boot: Example.otherBoot, sinceBoot: 2800, wallStep: -1_000_000_000)?.missed
                == 2)
    }

    @Test("A container that is restarted, on a host that has run for long, has missed nothing")
    func container() {
        let host = 100 * Self.day
        #expect(gap(60, boot: Example.otherBoot, sinceBoot: host) == nil)
        #expect(gap(1800, boot: Example.otherBoot, sinceBoot: host)?.missed == 2)
    }

    @Test("Clocks that no machine has never trap")
    func oddClocks() {
        for wall in [Int64.min, -1, 0, .max] {
            let now = Moment(
                boot: BootTime(nanoseconds: 5), wall: WallTime(milliseconds: wall))
            for lifetime in [0, 1e-9, 900] {
                let header = Example.header(
                    lastRotation: Example.stamp(boot: Example.otherBoot),
                    access: Example.life(lifetime))
                _ = RotationGap(before: now, of: header, mode: .ahead, boot: Example.boot)
            }
        }
    }
}
