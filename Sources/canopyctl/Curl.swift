internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Runs curl with the token as its Authorization header.
///
/// curl reads the header from a file without a name: as an argument every program could read it.
enum Curl: Command {
    static let name = "curl"
    static let summary = "run curl with an access token"
    static let operands = "-- ARGS…"
    static let remarks = """
        canopyctl curl -- --json '{"a":1}' https://api.example.com/v1/things
        curl itself drops the header where a redirect leads to another host. It speaks https:// alone,
        and http:// with this machine; what it is told by a --proto of its own wins.
        """
    static let options: Options = [.profile, .minimumValidity, .timeout]
    static let stopsAtOperand = true

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operandsFrom: 1, named: "curl's arguments")
        let header = try header(Token.request(arguments, accept: .json))
        let failure = Execution.replace(
            with: ["curl", "--header", "@/dev/fd/\(header)"]
                + protocols(for: arguments.operands) + arguments.operands)
        throw Complaint(
            .failure, "curl cannot be run", detail: "\(failure)",
            cure: failure.code == ENOENT ? "install it: apt-get install curl" : nil)
    }

    /// Options that keep curl from sending the token in the clear to another machine.
    ///
    /// To curl a URL without a scheme is plain HTTP. Which of its arguments are URLs only curl itself
    /// knows: one that looks like plain HTTP to another machine is taken for one.
    private static func protocols(for operands: [String]) -> [String] {
        let plain = operands.filter { $0.prefix(7).lowercased() == "http://" }
        let isLocal =
            !plain.isEmpty && plain.allSatisfy { TokenDestination(url: $0).staysHere }
            // Whatever the URL says then, it is a socket of this machine.
            || operands.contains("--unix-socket") || operands.contains("--abstract-unix-socket")
        return ["--proto", isLocal ? "=https,http" : "=https", "--proto-default", "https"]
    }

    /// The descriptor of a file that holds the header, which curl inherits.
    private static func header(_ response: borrowing Response) throws(Complaint) -> Int32 {
        let token = try GrantedToken(response)
        let descriptor = clinux_memfd_create("canopy-authorization")
        guard descriptor >= 0 else {
            throw Complaint(
                .failure, "no file without a name can be made",
                detail: "\(SystemError.last("memfd_create"))")
        }
        var line = SecretBuffer(capacity: token.value.count + 32, in: .locked)
        line.append("Authorization: Bearer ")
        line.append(token.value)
        line.append("\n")
        let whole = line.secret()
        let written = whole.withBytes { CLinux.write(descriptor, $0.baseAddress, $0.count) }
        guard written == whole.count, lseek(descriptor, 0, SEEK_SET) == 0,
            clinux_set_close_on_exec(descriptor, 0) == 0
        else {
            throw Complaint(
                .failure, "curl's header cannot be written",
                detail: "\(SystemError.last("write"))")
        }
        return descriptor
    }
}
