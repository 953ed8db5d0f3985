import AgentCore
import Testing

@Suite("An age is never negative, and never stays young for ever")
struct StampTests {
    private func now(_ uptime: Int64, _ wall: Int64) -> Moment {
        Moment(
            boot: BootTime(nanoseconds: uptime * 1_000_000_000), wall: WallTime(seconds: wall))
    }

    @Test("Within one boot, the boot clock alone counts")
    func sameBoot() {
        let stamp = Stamp(now(100, 5000), boot: Example.boot)
        #expect(stamp.age(at: now(160, 5060), boot: Example.boot) == .seconds(60))
        #expect(stamp.age(at: now(160, 0), boot: Example.boot) == .seconds(60))
        #expect(stamp.age(at: now(160, 1 << 40), boot: Example.boot) == .seconds(60))
        #expect(stamp.age(at: now(40, 5060), boot: Example.boot) == .zero)
    }

    @Test("Across boots the wall clock counts, and at the least the time since boot")
    func otherBoot() {
        let stamp = Stamp(now(100, 5000), boot: Example.otherBoot)
        #expect(stamp.age(at: now(20, 5300), boot: Example.boot) == .seconds(300))
        #expect(stamp.age(at: now(20, 4000), boot: Example.boot) == .seconds(20))
        #expect(stamp.age(at: now(20, 5000), boot: Example.boot) == .seconds(20))
    }

    @Test("Across boots a hold counts from the boot alone, a longer wait by the wall clock")
    func holdAcrossBoots() {
        let since = Stamp(now(100, 5000), boot: Example.otherBoot)
        let hold = NotBefore(since: since, span: .seconds(120))
        #expect(hold.remaining(at: now(20, 1 << 31), boot: Example.boot) == .seconds(100))
        #expect(hold.remaining(at: now(20, 0), boot: Example.boot) == .seconds(100))
        #expect(hold.remaining(at: now(120, 0), boot: Example.boot) == .zero)
        let told = NotBefore(since: since, span: .seconds(121))
        #expect(told.remaining(at: now(20, 5100), boot: Example.boot) == .seconds(21))
        #expect(told.remaining(at: now(20, 5200), boot: Example.boot) == .zero)
    }

    @Test("What is left of a wait is never negative and never above the wait")
    func remaining() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            let since = Stamp(
                now(
                    .random(in: 0...1 << 20, using: &generator),
                    .random(in: 0...1 << 31, using: &generator)),
                boot: Bool.random(using: &generator) ? Example.boot : Example.otherBoot)
            let span = TimeSpan.seconds(.random(in: 0...1000, using: &generator))
            let left = NotBefore(since: since, span: span).remaining(
                at: now(
                    .random(in: 0...1 << 20, using: &generator),
                    .random(in: 0...1 << 31, using: &generator)), boot: Example.boot)
            #expect(left >= .zero && left <= span)
        }
    }

    @Test("The ends of the number range are times too, for damaged files may name them")
    func extremes() {
        for milliseconds in [Int64.min, .min + 1, -1, 0, .max] {
            let wall = WallTime(milliseconds: milliseconds)
            #expect(wall.seconds <= milliseconds / 1000)
            #expect(Timestamp.rfc3339(wall).hasSuffix("Z"))
            let span = TimeSpan(nanoseconds: milliseconds)
            #expect(span.wholeSeconds <= milliseconds / 1_000_000_000)
            let life = AccessTokenLife(
                lifetime: span,
                sent: Stamp(
                    Moment(boot: BootTime(nanoseconds: milliseconds), wall: wall),
                    boot: Example.boot),
                expiry: wall, serverClockOffset: span)
            _ = life.expiresAt
            _ = life.remaining(at: Example.moment(), boot: Example.boot)
            _ = life.standardValidity
        }
        #expect(WallTime(milliseconds: -1).seconds == -1)
        #expect(WallTime(milliseconds: -1000).seconds == -1)
        #expect(WallTime(milliseconds: 1999).seconds == 1)
        #expect(TimeSpan(nanoseconds: -1).wholeSeconds == -1)
        #expect(TimeSpan.seconds(.max) > .seconds(1 << 30))
        #expect(TimeSpan.seconds(.min) < .zero)
    }
}
