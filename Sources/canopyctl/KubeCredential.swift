internal import AgentCore
internal import LinuxSystem

/// Answers kubectl and other clients of Kubernetes as an exec credential plugin.
enum KubeCredential: Command {
    static let name = "kube-credential"
    static let summary = "answer kubectl as an exec credential plugin"
    static let remarks = """
        In the kubeconfig's user:
          exec:
            apiVersion: client.authentication.k8s.io/v1
            command: canopyctl
            args: [kube-credential]
            interactiveMode: Never
        With provideClusterInfo: true, a cluster at an http:// address that is not this machine gets
        no token.
        """
    static let options: Options = [.profile]

    /// The versions of the format, which are the same for what is said here.
    private static let versions = [
        "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1",
    ]

    static func run(_ arguments: Arguments) throws(Complaint) -> ExitCode {
        try arguments.check(operands: 0)
        let version = try negotiate()
        let token = try GrantedToken.of(try arguments.profile)
        var writer = JSONWriter(
            into: SecretBuffer(capacity: token.value.count + 256, in: .locked))
        writer.beginObject()
        writer.member("apiVersion", version)
        writer.member("kind", "ExecCredential")
        writer.key("status")
        writer.beginObject()
        // From then on canopyd has a fresher one; the client keeps this one until it asks again.
        writer.member("expirationTimestamp", Timestamp.rfc3339(token.refreshAt))
        writer.member("token", token.value)
        writer.endObject()
        writer.endObject()
        var text = writer.finish()
        text.append("\n")
        try StandardOutput.write(text.secret())
        return .done
    }

    /// The version that the client asks for, which it has to get; the newest if it does not say.
    ///
    /// Fails also where it says which cluster it means, and the token would go there in the clear.
    private static func negotiate() throws(Complaint) -> String {
        guard let info = Environment.process["KUBERNETES_EXEC_INFO"] else { return versions[0] }
        var text = info
        let (asked, server) = text.withUTF8 { bytes -> (String?, String?) in
            do throws(JSONFault) {
                let said = try JSONReader.parse(UnsafeRawBufferPointer(bytes))
                return (
                    said["apiVersion"]?.string, said["spec"]?["cluster"]?["server"]?.string
                )
            } catch {
                return (nil, nil)
            }
        }
        guard let asked, versions.contains(asked) else {
            throw Complaint(
                .failure, "KUBERNETES_EXEC_INFO asks for a version that canopyctl does not speak",
                detail: asked ?? "none",
                cure: "in the kubeconfig, apiVersion of exec must be \(versions[0])")
        }
        if let server { try TokenDestination(url: server).check() }
        return asked
    }
}
