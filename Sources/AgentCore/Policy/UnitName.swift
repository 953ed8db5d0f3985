/// The rules for names of systemd units (unit_name_is_valid in systemd's `unit-name.c`).
package enum UnitName {
    /// Types of units that have processes and are no slices: what a process can be in.
    private static let types = ["service", "scope", "socket", "mount", "swap"]

    /// Whether a unit of this name can have processes, and is none but a container of others.
    package static func holdsProcesses(_ name: some StringProtocol) -> Bool {
        types.contains { isValid(name, type: $0) }
    }

    /// Whether it is the name of a service or a scope, which programs are started in.
    package static func holdsPrograms(_ name: some StringProtocol) -> Bool {
        isValid(name, type: "service") || isValid(name, type: "scope")
    }

    /// The template that a unit is an instance of, `NAME@.TYPE`; nil for a unit of no template.
    static func template(of name: String) -> String? {
        guard let at = name.firstIndex(of: "@"), let dot = name.lastIndex(of: "."), at < dot else {
            return nil
        }
        return String(name[...at] + name[dot...])
    }

    static func isSlice(_ name: some StringProtocol) -> Bool { isValid(name, type: "slice") }

    private static func isValid(_ name: some StringProtocol, type: String) -> Bool {
        guard name.utf8.count <= Limits.unitNameBytes, name.hasSuffix("." + type) else {
            return false
        }
        let stem = name.utf8.dropLast(type.utf8.count + 1)
        guard let first = stem.first, first != UInt8(ascii: ".") else { return false }
        return stem.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "-"),
                UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "@"):
                true
            default: false
            }
        }
    }
}
