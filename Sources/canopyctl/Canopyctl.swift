internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// canopyctl: finds the command, runs it, and ends with its exit code.
@main
enum Canopyctl {
    static func main() {
        Hardening.leaveCrashesToTheKernel()
        StandardDescriptors.fill()
        // canopyd's end of a socket may go, and the reader of our words, while there is more to do.
        signal(SIGPIPE, SIG_IGN)
        // So is a limit on the size of files (RLIMIT_FSIZE).
        signal(SIGXFSZ, SIG_IGN)
        // Whoever starts us may ignore the ends of children: a program that we run would leave no word of
        // its end, and be waited for without one.
        signal(SIGCHLD, SIG_DFL)
        LockedMemory.onRefusal { refusal in
            StandardError.say(
                "canopyctl: warning: what is secret may be swapped to disk, for memory cannot be "
                    + "locked (\(refusal)); raise the limit: ulimit -l 8192")
        }
        do throws(Complaint) {
            exit(try run().rawValue)
        } catch {
            error.print()
            exit(error.exitCode.rawValue)
        }
    }

    /// All of them, in the order of the help.
    ///
    /// No array, for the reason that ``Options`` is none.
    private static var table: [19 of any Command.Type] {
        [
            Login.self, Token.self, Header.self, Status.self, Profiles.self, Whoami.self,
            Sessions.self, Revoke.self, Refresh.self, Logout.self, Watch.self, Exec.self,
            Curl.self, GitCredential.self, KubeCredential.self, DockerCredential.self,
            Doctor.self, SetupHeadless.self, Completion.self,
        ]
    }

    static var commands: [any Command.Type] { table.indices.map { table[$0] } }

    private static func command(named name: String) -> (any Command.Type)? {
        let table = table
        for index in table.indices where table[index].name == name { return table[index] }
        return nil
    }

    private static func run() throws(Complaint) -> ExitCode {
        let vector = ProgramArguments.vector
        let count = ProgramArguments.count
        // Whoever calls execve(2) may leave out the name.
        if count > 0, let path = vector[0], let helper = helper(called: path) {
            return try run(helper, vector, count)
        }
        let general = try Arguments(
            "canopyctl", vector, count: count, options: Options.common, stopsAtOperand: true)
        if general[flag: .help] {
            try StandardOutput.print(help)
            return .done
        }
        if general[flag: .version] {
            try StandardOutput.print("canopyctl \(Version.text)")
            return .done
        }
        guard let name = general.firstOperand else {
            throw .usage("no command is given")
        }
        guard let command = command(named: name) else {
            throw .usage("there is no command \(name)")
        }
        let first = general.consumed
        return try run(command, vector + first, count - Int32(first))
    }

    /// The command that another program means by the name under which it starts us.
    private static func helper(called path: UnsafePointer<CChar>) -> (any Command.Type)? {
        let slash = strrchr(path, Int32(UInt8(ascii: "/")))
        let name = String(cString: slash.map { UnsafePointer($0 + 1) } ?? path)
        if name == DockerCredential.program { return DockerCredential.self }
        return name == GitCredential.program ? GitCredential.self : nil
    }

    private static func run(
        _ command: any Command.Type,
        _ vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, _ count: Int32
    ) throws(Complaint) -> ExitCode {
        let arguments = try Arguments(
            command.name, vector, count: count, options: command.options + Options.common,
            stopsAtOperand: command.stopsAtOperand)
        if arguments[flag: .help] {
            try StandardOutput.print(command.help)
            return .done
        }
        if arguments[flag: .version] {
            try StandardOutput.print("canopyctl \(Version.text)")
            return .done
        }
        return try command.run(arguments)
    }

    private static var help: String {
        var table = Table()
        for command in commands { table.row(["  \(command.name)", command.summary]) }
        return """
            usage: canopyctl COMMAND [OPTION…]

            Signs in to Canopy and hands out access tokens, through canopyd.

            commands:
            \(table.lines.joined(separator: "\n"))

            Each has its own --help; --version says which canopyctl this is. CANOPY_PROFILE,
            CANOPY_URL and CANOPY_PUBLISHABLE_KEY stand in for --profile, --url and --key;
            CANOPYD_SOCKET names another socket.

            exit codes: 0 done, 1 other failure, 2 usage, 3 canopyd not reached,
            4 sign-in needed or refused, 5 keyring locked or unavailable, 6 server unreachable,
            failing or throttling, 7 forbidden, 8 unknown profile, 9 timeout
            """
    }
}
