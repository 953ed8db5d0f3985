package import AgentCore
internal import CLinux

extension Moment {
    /// Reads both clocks.
    package static var now: Moment {
        Moment(boot: .now, wall: .now)
    }
}

extension BootTime {
    /// Reads `CLOCK_BOOTTIME`.
    package static var now: BootTime {
        var time = timespec()
        // Cannot fail: the clock exists on every kernel since 2.6.39.
        clock_gettime(CLOCK_BOOTTIME, &time)
        return BootTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}

extension WallTime {
    /// Reads `CLOCK_REALTIME`.
    package static var now: WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
