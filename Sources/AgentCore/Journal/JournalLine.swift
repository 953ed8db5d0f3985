/// One line, as text for a terminal and as fields for the journal.
package struct JournalLine: Sendable {
    package let event: JournalEvent
    private let fields: [(field: JournalField, value: String)]

    /// Bytes of a value at most; an error that quotes a server is not to flood the log.
    private static let valueBytes = Limits.logValueBytes

    package init(_ event: JournalEvent, _ fields: [(JournalField, String)]) {
        self.event = event
        self.fields = fields.map { ($0, JournalLine.oneLine($1)) }
    }

    /// The message and what belongs to it, without a line break.
    package var text: String {
        var text = event.message.description
        for (index, (field, value)) in fields.enumerated() {
            text += (index == 0 ? ": " : ", ") + "\(field.rawValue)=\(value)"
        }
        return text
    }

    /// The line in the journal's native protocol: `NAME=value` and a line break for each field
    /// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
    package var datagram: [UInt8] {
        var text =
            "MESSAGE=\(self.text)\nMESSAGE_ID=\(event.id)\nPRIORITY=\(event.level.priority)\n"
        text += "SYSLOG_IDENTIFIER=canopyd\nCANOPYD_EVENT=\(event.rawValue)\n"
        for (field, value) in fields { text += "\(field.journalName)=\(value)\n" }
        return Array(text.utf8)
    }

    /// A line break would begin another field, and another line of the log.
    private static func oneLine(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            guard result.utf8.count < valueBytes else { return result + "…" }
            result.unicodeScalars.append(
                scalar.value < 0x20 || scalar.value == 0x7F ? " " : scalar)
        }
        return result
    }
}
