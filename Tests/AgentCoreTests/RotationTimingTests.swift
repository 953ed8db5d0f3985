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

    @Test("Back-off starts between one and three seconds and never leaves its bounds")
    func backOff() {
        for draw in Self.draws {
            let first = RotationTiming.backOff(after: nil, draw: draw)
            #expect(first >= .seconds(1) && first < .seconds(3))
        }
        for last in [0, 0.5, 1, 10, 99, 300, 1e6] {
            for draw in Self.draws {
                for ceiling in [
                    RotationTiming.backOffCeiling, RotationTiming.keyringBackOffCeiling,
                ] {
                    let wait = RotationTiming.backOff(
                        after: Example.span(last), draw: draw, ceiling: ceiling)
                    #expect(wait >= .seconds(1) && wait <= ceiling)
                    #expect(wait <= max(.seconds(1), Example.span(last * 3)))
                }
            }
        }
    }

    @Test("Back-off grows to its ceiling where chance lets it, and is spread all over there")
    func backOffGrows() {
        var wait: TimeSpan?
        for _ in 0..<10 { wait = RotationTiming.backOff(after: wait, draw: 0.999_999) }
        #expect(wait.map { $0 > .seconds(299) } == true)
        #expect(RotationTiming.backOff(after: wait, draw: 0) == .seconds(1))
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
    }

    @Test("The quick repetitions stay within a grace of moments")
    func quick() {
        #expect(
            RotationTiming.quickRetries
                == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
    }
}
