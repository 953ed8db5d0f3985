/// The processes that were given a token a moment ago, so that one which connects for every request
/// is looked at once in a while and not each time.
///
/// Only for profiles that every program may use: what is spared is a line in the journal. For a
/// second a number names one process: giving out all others before it comes again takes 32,768
/// starts at the least.
package struct RecentCallers: Sendable {
    private struct Entry {
        var process: Int32 = 0
        var clearance: UInt64 = 0
        var until = BootTime(nanoseconds: 0)
    }

    /// By the number's last digits: processes that are started one after the other do not meet.
    private var entries = [Entry](repeating: Entry(), count: Limits.recentCallers)

    package init() {}

    /// Whether the process was noted with the clearance within the last second.
    package func contains(_ process: Int32, _ clearance: UInt64, at now: BootTime) -> Bool {
        let entry = entries[RecentCallers.place(of: process)]
        return entry.process == process && entry.clearance == clearance && now < entry.until
    }

    /// Notes the process, which has a number, in the place of another.
    package mutating func note(_ process: Int32, _ clearance: UInt64, at now: BootTime) {
        guard process > 0 else { return }
        entries[RecentCallers.place(of: process)] = Entry(
            process: process, clearance: clearance,
            until: now + .seconds(Int64(Limits.recentCallerSeconds)))
    }

    private static func place(of process: Int32) -> Int {
        Int(UInt32(bitPattern: process) % UInt32(Limits.recentCallers))
    }
}
