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

    @Test("Across boots the wall clock counts, and where it went back the least that is sure")
    func otherBoot() {
        let stamp = Stamp(now(100, 5000), boot: Example.otherBoot)
        #expect(stamp.age(at: now(20, 5300), boot: Example.boot) == .seconds(300))
        #expect(stamp.age(at: now(20, 4000), boot: Example.boot) == .seconds(20))
        // A clock that may have gone on says less.
        #expect(stamp.age(at: now(130, 4000), boot: Example.boot) == .seconds(30))
        #expect(stamp.age(at: now(20, 5000), boot: Example.boot) == .zero)
    }

    @Test("A container's boot clock is its host's, and neither ages a stamp nor ends a hold")
    func container() {
        let uptime: Int64 = 100 * 86_400
        let stamp = Stamp(now(uptime, 5000), boot: Example.otherBoot)
        let hold = NotBefore(since: stamp, span: .seconds(120))
        // Restarted on its host, 10 s later; and moved to one that has run for longer, or not so long.
        for host in [uptime + 10, 3 * uptime, uptime / 2] {
            let after = now(host, 5010)
            #expect(stamp.age(at: after, boot: Example.boot) == .seconds(10))
            #expect(hold.remaining(at: after, boot: Example.boot) == .seconds(110))
        }
        // The host's clock tells what its wall clock does not.
        #expect(stamp.age(at: now(uptime + 10, 0), boot: Example.boot) == .seconds(10))
        #expect(
            hold.remaining(at: now(uptime + 10, 1 << 31), boot: Example.boot) == .seconds(110))
    }

    @Test("Across boots a hold counts by what is sure alone, a longer wait by the wall clock")
    func holdAcrossBoots() {
        let since = Stamp(now(100, 5000), boot: Example.otherBoot)
        let hold = NotBefore(since: since, span: .seconds(120))
        #expect(hold.remaining(at: now(20, 1 << 31), boot: Example.boot) == .seconds(100))
        #expect(hold.remaining(at: now(20, 0), boot: Example.boot) == .seconds(100))
        #expect(hold.remaining(at: now(99, 1 << 31), boot: Example.boot) == .seconds(21))
        // A clock that stands after the stamp's may never have stopped.
        #expect(hold.remaining(at: now(100, 1 << 31), boot: Example.boot) == .seconds(120))
        #expect(hold.remaining(at: now(220, 0), boot: Example.boot) == .zero)
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
