internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Colours, where they are wanted: on a terminal that has them, without `NO_COLOR`.
struct Style {
    let isColoured: Bool

    /// The style for what is written to `descriptor`.
    init(descriptor: Int32) {
        let environment = Environment.process
        isColoured =
            isatty(descriptor) == 1 && environment["NO_COLOR"] == nil
            && environment["TERM"] != "dumb"
    }

    func good(_ text: String) -> String { paint(text, "32") }
    func doubtful(_ text: String) -> String { paint(text, "33") }
    func alarming(_ text: String) -> String { paint(text, "31") }
    func strong(_ text: String) -> String { paint(text, "1") }

    private func paint(_ text: String, _ colour: String) -> String {
        isColoured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
    }
}
