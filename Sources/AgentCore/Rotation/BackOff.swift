/// How long to wait after a failure: decorrelated jitter, from ``start`` to a ceiling.
///
/// Chosen with `scripts/fleet`; the figures and a plot are in docs/fleet.md.
package struct BackOff: Equatable, Sendable {
    /// How far a wait may reach beyond the longest one before it.
    package let growth: Double

    /// What no wait exceeds; one that uses the time of a good token excepted.
    package let ceiling: TimeSpan

    /// The shortest wait.
    package static let start = TimeSpan.seconds(1)

    /// While the server is what fails.
    ///
    /// The ceiling is the time between two rotations, 80 % of the lifetime: an agent that cannot
    /// reach its server then asks about as often as one that can, so that a server which comes
    /// back after an hour sees little more than its everyday load. With 5 minutes, whatever the
    /// lifetime, a million agents of 900 s came back with 8 times that load, and once more with 5
    /// times 12 minutes later. It is 5 minutes at least, because short-lived tokens cause a high
    /// load every day; and 15 at most, because people wait: with tokens of an hour the load is then
    /// 3.5 times the everyday one, which is a quarter of what it is with tokens of 900 s.
    ///
    /// The growth is a compromise: with 3 a million agents send twice as much in the first minutes of
    /// an outage, and with 8 the third attempt may be a minute away.
    package static func server(lifetime: TimeSpan?) -> BackOff {
        let interval = (lifetime ?? .zero) * RotationTiming.meanRotationPoint
        return BackOff(
            growth: 4, ceiling: min(.seconds(15 * 60), max(.seconds(5 * 60), interval)))
    }

    /// While something on this machine is what fails: asking costs nobody else.
    package static let local = BackOff(growth: 3, ceiling: .seconds(60))

    private init(growth: Double, ceiling: TimeSpan) {
        self.growth = growth
        self.ceiling = ceiling
    }

    /// The share of the ceiling that waits lie in once they have reached it.
    ///
    /// Waits anywhere below it would bring agents back twice as fast, and twice as dense, at the same
    /// ceiling. Narrower ones would keep together what failed together.
    private static let steady = 0.75

    /// The next wait.
    ///
    /// It grows from `longest`, the longest one since the failures began (nil for none): the last
    /// one alone, which jitter often makes a short one, would take an hour to grow to the ceiling.
    /// `leisure` is for how long a token in hand still serves. Nobody waits for the next one then, so
    /// the wait may be anywhere in it: a server that was away for a minute is not hurried for the
    /// sake of tokens that are good for two more.
    package func wait(
        after longest: TimeSpan?, leisure: TimeSpan = .zero, draw: Double
    ) -> TimeSpan {
        let top = max(ceiling, leisure)
        let longest = longest ?? BackOff.start
        guard longest < ceiling * BackOff.steady || leisure > ceiling else {
            return steady(top, draw)
        }
        let reach = max(longest * growth, leisure)
        let wait = BackOff.start + max(.zero, reach - BackOff.start) * draw
        guard wait > top else { return wait }
        return steady(top, (wait - top).seconds / (reach - top).seconds)
    }

    private func steady(_ top: TimeSpan, _ draw: Double) -> TimeSpan {
        top * (BackOff.steady + (1 - BackOff.steady) * draw)
    }

    /// What the wait after the next is to grow from.
    package func longest(
        _ longest: TimeSpan?, wait: TimeSpan, leisure: TimeSpan = .zero
    ) -> TimeSpan {
        min(ceiling, max(longest ?? .zero, wait, leisure))
    }
}
