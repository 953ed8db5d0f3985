/// One command of canopyctl.
protocol Command {
    static var name: String { get }

    /// One line for the list of commands.
    static var summary: String { get }

    /// What its arguments are besides options, for the help; empty if there are none.
    static var operands: String { get }

    /// What else is to be known, for the help.
    static var remarks: String { get }

    /// Its options, without the common ones.
    static var options: Options { get }

    /// Whether what follows the first operand belongs to another program.
    static var stopsAtOperand: Bool { get }

    /// Does it.
    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode
}

extension Command {
    static var operands: String { "" }
    static var remarks: String { "" }
    static var stopsAtOperand: Bool { false }

    /// The help, as `--help` prints it.
    static var help: String {
        var text = "usage: canopyctl \(name) [OPTION…]\(operands.isEmpty ? "" : " " + operands)\n"
        text += "\n\(summary)\n"
        if !remarks.isEmpty { text += "\n\(remarks)\n" }
        text += "\noptions:\n"
        var table = Table()
        for option in options + Options.common where !option.meaning.isEmpty {
            let letter = option.letter.map { "-\($0), " } ?? "    "
            let value = option.value.map { " \($0)" } ?? ""
            table.row(["  \(letter)--\(option.name)\(value)", option.meaning])
        }
        return text + table.lines.joined(separator: "\n")
    }
}
