internal import AgentCore
internal import LinuxSystem

/// Speaks the protocol of docker's credential helpers, which skopeo, podman and others share.
enum DockerCredential: Command {
    static let name = "docker-credential"
    static let summary = "answer docker, podman or skopeo as a credential helper"
    static let operands = "get|list|store|erase|version"
    static let remarks = """
        The tools look for a program named docker-credential-canopy: link it to canopyctl. Name it
        for the registries that the token is for, and for no other, in the tool's config.json:
          {"credHelpers": {"registry.example.com": "canopy"}}
        An http:// address that is not this machine gets none. A name without a scheme is a registry
        that the tool speaks TLS with, unless it is told to do without.
        """
    static let options: Options = [.profile, .username]

    /// The name under which the tools look for it.
    static let program = "docker-credential-canopy"

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        do throws(Complaint) {
            try arguments.check(operands: 1, named: "get, list, store, erase or version")
            try answer(arguments.operands[0], arguments)
        } catch {
            // The tools read the error from standard output.
            if error.exitCode != .usage { try StandardOutput.print(error.line) }
            throw error
        }
        return .done
    }

    private static func answer(_ action: String, _ arguments: Arguments) throws(Complaint) {
        switch action {
        case "get":
            let server = try StandardInput.readAll().withBytes {
                String(decoding: $0.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
            }
            guard !server.isEmpty else {
                throw Complaint(
                    .failure, "no registry's name is on standard input",
                    cure: "try: echo registry.example.com | canopyctl docker-credential get")
            }
            try get(server, arguments)
        case "list":
            // Which registries take the token is the tool's configuration, not ours to know.
            try StandardOutput.print("{}")
        case "version":
            try StandardOutput.print("canopyctl \(Version.text)")
        case "erase":
            _ = try StandardInput.readAll()
        case "store":
            _ = try StandardInput.readAll()
            throw Complaint(
                .failure, "canopyd keeps its own session, and stores no other credential",
                cure: "sign in with: canopyctl login")
        default:
            throw arguments.usage("there is no action \(action)")
        }
    }

    private static func get(_ server: String, _ arguments: Arguments) throws(Complaint) {
        // A bare name is the usual one; whether that registry has TLS is in the tool's own hands.
        if server.contains("://") { try TokenDestination(url: server).check() }
        let token = try GrantedToken.of(try arguments.profile)
        var writer = JSONWriter(
            into: SecretBuffer(capacity: token.value.count + 256, in: .locked))
        writer.beginObject()
        writer.member("ServerURL", server)
        writer.member("Username", arguments[.username] ?? Username.standard)
        writer.member("Secret", token.value)
        writer.endObject()
        var text = writer.finish()
        text.append("\n")
        try StandardOutput.write(text.secret())
    }
}
