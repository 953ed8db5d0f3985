/// Text in aligned columns.
struct Table {
    private var rows: [[String]] = []
    private var paints: [[@Sendable (String) -> String]] = []

    /// Adds a line; each cell is painted after it has got its width.
    mutating func row(_ cells: [String], paint: [Int: @Sendable (String) -> String] = [:]) {
        rows.append(cells)
        paints.append(cells.indices.map { paint[$0] ?? { $0 } })
    }

    /// The lines, two spaces between columns and none at an end.
    var lines: [String] {
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.count)
            }
        }
        return zip(rows, paints).map { row, paints in
            var line = ""
            var gap = 0
            for (column, cell) in row.enumerated() where !cell.isEmpty || column < row.count - 1 {
                line += String(repeating: " ", count: gap) + paints[column](cell)
                gap = widths[column] - cell.count + 2
            }
            return line
        }
    }
}
