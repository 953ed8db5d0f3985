internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// What the command line says.
struct Options {
    enum Action {
        case serve, checkConfiguration, showHelp, showVersion
    }

    var action = Action.serve
    var socket: String?
    var configuration: String?
    var logLevel: LogLevel?

    static let usage = """
        Usage: canopyd [OPTION...]

        Keeps Canopy sign-ins alive and hands their access tokens to programs of this user.

          -s, --socket PATH       serve at PATH ($CANOPYD_SOCKET, else
                                  $XDG_RUNTIME_DIR/canopyd/agent.sock)
          -c, --config PATH       read PATH ($XDG_CONFIG_HOME/canopyd/canopyd.conf)
              --log-level LEVEL   error, warning, info or debug
              --check-config      check the configuration and exit
          -h, --help              show this text and exit
          -V, --version           show the version and exit

        """

    /// What cannot be made sense of.
    struct Misuse: Error {
        let text: String
    }

    /// Reads the process's arguments.
    static func parse() throws(Misuse) -> Options {
        var options = Options()
        let names: [(StaticString, Int32, Character)] = [
            ("socket", required_argument, "s"), ("config", required_argument, "c"),
            ("log-level", required_argument, "l"), ("check-config", no_argument, "k"),
            ("help", no_argument, "h"), ("version", no_argument, "V"),
        ]
        let long =
            names.map { name, argument, letter in
                option(
                    name: UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self),
                    has_arg: argument, flag: nil, val: Int32(letter.asciiValue ?? 0))
            } + [option()]
        clinux_reset_options()
        while true {
            let letter = getopt_long(
                ProgramArguments.count, ProgramArguments.vector, ":s:c:hV", long, nil)
            guard letter != -1 else { break }
            let argument = clinux_optarg().map { String(cString: $0) } ?? ""
            switch Character(UnicodeScalar(UInt8(truncatingIfNeeded: letter))) {
            case "s": options.socket = try path(argument, of: "--socket")
            case "c": options.configuration = try path(argument, of: "--config")
            case "k": options.action = .checkConfiguration
            case "h": options.action = .showHelp
            case "V": options.action = .showVersion
            case "l":
                guard let level = LogLevel(rawValue: argument) else {
                    throw Misuse(
                        text: "--log-level is '\(argument)'; it is error, warning, info or debug")
                }
                options.logLevel = level
            case ":":
                throw Misuse(text: "\(last()) needs a value")
            default:
                throw Misuse(text: "there is no option \(last())")
            }
        }
        guard clinux_optind() >= ProgramArguments.count else {
            throw Misuse(
                text: "there is no argument '\(ProgramArguments.all[Int(clinux_optind())])'")
        }
        return options
    }

    private static func path(_ argument: String, of option: String) throws(Misuse) -> String {
        guard !argument.isEmpty else { throw Misuse(text: "\(option) is empty; it takes a path") }
        return argument
    }

    /// The word that getopt stopped at.
    private static func last() -> String {
        ProgramArguments.all[max(1, Int(clinux_optind()) - 1)]
    }
}
