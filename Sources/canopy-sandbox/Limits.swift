internal import AgentCore

/// The limits of the sandbox as a process.
extension Limits {
    /// Connections to the sandbox at a time: below the usual limit of 1024 descriptors.
    ///
    /// Enforced by `Server`.
    static let sandboxConnections = 900
}
