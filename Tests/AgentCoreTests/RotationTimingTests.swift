import AgentCore
import Testing

@Suite("Waits are spread, and bounded at both ends")
struct RotationTimingTests {
    private static let draws = [0, 0.25, 0.5, 0.999_999_999]

    @Test("A token is rotated between 75 and 85 percent of its lifetime", arguments: draws)
    func rotationPoint(_ draw: Double) {
        for lifetime in [1.0, 60, 900, 86_400] {
            let point = RotationTiming.rotationPoint(lifetime: Example.span(lifetime), draw: draw)
            #expect(
                point >= Example.span(lifetime * 0.75) && point <= Example.span(lifetime * 0.85))
        }
        #expect(RotationTiming.rotationPoint(lifetime: .seconds(100), draw: 0.5) == .seconds(80))
    }

    @Test("After an outage the rotation point fills what the recovery left empty of the interval")
    func recovery() {
        let point = { (lifetime: Double, draw: Double) in
            RotationTiming.rotationPoint(
                lifetime: Example.span(lifetime), isRecovery: true, draw: draw
            ).seconds / lifetime
        }
        for lifetime in [60.0, 300, 900, 1200] {
            #expect(abs(point(lifetime, 0) - 0.75) < 1e-6)
        }
        // 15 minutes are a quarter of an hour, and 0.85 - 0.25 is left to fill.
        #expect(abs(point(3600, 0) - 0.30) < 1e-6)
        #expect(point(86_400, 0) > 0.05)
        for lifetime in [900.0, 3600, 86_400] {
            #expect(abs(point(lifetime, 0.999_999_999) - 0.85) < 1e-6)
        }
    }

    @Test("The floor is 5 s or a tenth, the hold 120 s or half, whichever is less")
    func floorAndHold() {
        for (lifetime, floor, hold) in [
            (900.0, 5.0, 120.0), (240, 5, 120), (239, 5, 119.5), (50, 5, 25), (40, 4, 20),
            (10, 1, 5),
        ] {
            #expect(RotationTiming.floor(lifetime: Example.span(lifetime)) == Example.span(floor))
            #expect(RotationTiming.hold(lifetime: Example.span(lifetime)) == Example.span(hold))
        }
    }

    @Test("Retry-After is obeyed from a second to 15 minutes, and up to a tenth more")
    func obeyed() {
        for (told, least) in [(-5.0, 1.0), (0, 1), (1, 1), (60, 60), (900, 900), (1e9, 900)] {
            #expect(
                RotationTiming.obeyed(retryAfter: Example.span(told), draw: 0)
                    == Example.span(least))
            let most = RotationTiming.obeyed(retryAfter: Example.span(told), draw: 0.999_999)
            #expect(most > Example.span(least) && most <= Example.span(least * 1.1))
        }
        #expect(
            RotationTiming.obeyed(retryAfter: .seconds(60), spread: .seconds(720), draw: 0.5)
                == .seconds(420))
    }

    @Test("The quick repetitions stay within a grace of moments")
    func quick() {
        #expect(
            RotationTiming.quickRetries
                == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
    }
}
