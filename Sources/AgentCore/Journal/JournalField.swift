/// What varies in a line of the journal; none of it is a secret.
package enum JournalField: String, CaseIterable, Sendable {
    case profile
    case generation
    case code
    /// Seconds, with a point.
    case duration
    case reason
    case error
    case unit
    case status
    case path
    case name
    case line
    case uid
    case pid
    case executable
    case version
    /// How many rotations were not made.
    case missed
    /// What to do about it.
    case fix
    /// How many lines of the same kind were left out before this one.
    case suppressed

    /// The field's name in the journal.
    package var journalName: String { "CANOPYD_" + rawValue.uppercased() }
}
