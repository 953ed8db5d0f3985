/// Text of others, made harmless for a terminal and a desktop: what a server or a file says must not
/// move the cursor, change colours or reorder a line.
package enum Plain {
    /// The text in one line, with `?` for every character that is a command to a terminal.
    package static func line(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A, 0x09: result.append(" ")
            // C0, DEL and C1; line separators; directional marks, embeddings and isolates.
            case 0x00...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x200E...0x200F, 0x2066...0x2069:
                result.append("?")
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
