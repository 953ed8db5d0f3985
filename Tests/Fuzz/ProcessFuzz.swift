/// What `/proc` says of a process, in files that the process has a part in: its name, and where it
/// has put itself.
enum ProcessFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        if let units = UnitMembership(controlGroups: bytes) {
            for name in units.names {
                law(UnitName.holdsProcesses(name), "a unit has a unit's name")
                law(bytes.text.contains(name), "a unit is named in the file")
            }
            law(units.user == nil || units.system != nil, "a user's unit is in its manager's")
        }
        if let start = ProcessStart.time(stat: bytes) {
            law(start.nanoseconds >= 0, "a process starts after the boot")
            law(bytes.contains(UInt8(ascii: ")")), "the fields come after the name")
        }
        // The name may be anything: none moves the fields.
        var stat = Array("42 (".utf8)
        stat += bytes
        stat += ") S 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 700 9 10".utf8
        law(
            ProcessStart.time(stat: stat) == BootTime(nanoseconds: 7_000_000_000),
            "a program's name does not change its start")
        // A directory below a unit's does not change the unit.
        var group = Array("0::/system.slice/a.service/".utf8)
        group += bytes.prefix { $0 != UInt8(ascii: "\n") }
        if let units = UnitMembership(controlGroups: group) {
            law(units.names == ["a.service"], "what is below a unit is in it")
        }
    }
}
