/// Time since boot, suspend included (`CLOCK_BOOTTIME`): what all waiting is counted in.
package struct BootTime: Comparable, Hashable, Sendable {
    /// Nanoseconds since boot.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than anything that will be waited for, and still a time that the kernel accepts.
    package static let distantFuture = BootTime(nanoseconds: Int64.max / 4)

    package static func < (left: BootTime, right: BootTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    package static func + (time: BootTime, span: TimeSpan) -> BootTime {
        BootTime(nanoseconds: time.nanoseconds &+ span.nanoseconds)
    }

    package static func - (left: BootTime, right: BootTime) -> TimeSpan {
        TimeSpan(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
}

/// Wall-clock time (`CLOCK_REALTIME`): what other machines mean, and what a user may set wrong.
package struct WallTime: Comparable, Hashable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package init(seconds: Int64) {
        milliseconds = seconds.multipliedReportingOverflow(by: 1000).partialValue
    }

    /// Whole seconds since 1970, rounded down.
    package var seconds: Int64 {
        milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0)
    }

    package static func < (left: WallTime, right: WallTime) -> Bool {
        left.milliseconds < right.milliseconds
    }

    package static func + (time: WallTime, span: TimeSpan) -> WallTime {
        WallTime(milliseconds: time.milliseconds &+ span.milliseconds)
    }

    package static func - (time: WallTime, span: TimeSpan) -> WallTime {
        WallTime(milliseconds: time.milliseconds &- span.milliseconds)
    }

    package static func - (left: WallTime, right: WallTime) -> TimeSpan {
        TimeSpan(milliseconds: left.milliseconds &- right.milliseconds)
    }
}

/// A length of time in 64 bits; `Duration` has 128 and costs more on the path of every request.
package struct TimeSpan: Comparable, Hashable, Sendable {
    /// Nanoseconds; negative for a time that is over.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    package init(milliseconds: Int64) {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        nanoseconds = overflow ? (milliseconds < 0 ? -.max / 4 : .max / 4) : product
    }

    package static let zero = TimeSpan(nanoseconds: 0)

    package static func seconds(_ seconds: Int64) -> TimeSpan {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return TimeSpan(milliseconds: overflow ? (seconds < 0 ? .min : .max) : product)
    }

    package static func milliseconds(_ milliseconds: Int64) -> TimeSpan {
        TimeSpan(milliseconds: milliseconds)
    }

    /// Milliseconds, rounded towards zero.
    package var milliseconds: Int64 { nanoseconds / 1_000_000 }

    /// Whole seconds, rounded down.
    package var wholeSeconds: Int64 {
        nanoseconds / 1_000_000_000 - (nanoseconds % 1_000_000_000 < 0 ? 1 : 0)
    }

    /// Seconds with their fraction.
    package var seconds: Double { Double(nanoseconds) / 1e9 }

    package static func < (left: TimeSpan, right: TimeSpan) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    package static func + (left: TimeSpan, right: TimeSpan) -> TimeSpan {
        TimeSpan(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }

    package static func - (left: TimeSpan, right: TimeSpan) -> TimeSpan {
        TimeSpan(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    /// The part of the span that `factor`, a finite number of 0 or more, says.
    package static func * (span: TimeSpan, factor: Double) -> TimeSpan {
        let product = Double(span.nanoseconds) * factor
        return TimeSpan(nanoseconds: product >= Double(Int64.max / 4) ? .max / 4 : Int64(product))
    }
}

/// Both clocks, read together.
package struct Moment: Hashable, Sendable {
    package let boot: BootTime
    package let wall: WallTime

    package init(boot: BootTime, wall: WallTime) {
        self.boot = boot
        self.wall = wall
    }
}

/// Names one boot of one machine (the kernel's `boot_id`): boot times compare under it alone.
package struct BootID: Hashable, Sendable {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }
}
