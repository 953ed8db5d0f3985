package import AgentCore

/// The limits of what the kernel is asked for.
extension Limits {
    /// Bytes of a file or a socket that are read at once, where the whole is not small.
    ///
    /// Enforced by `FileDescriptor`, `TrustFile` and whoever else reads in turns.
    package static let readBytes = 16 << 10

    /// Bytes of one profile's file in the state directory: some 100 per sign-in that ended, kept for ever.
    ///
    /// Enforced by `StateDirectory`.
    package static let stateFileBytes = 4 << 20

    /// Bytes of a line that may be the first of a certificate: the longest of these has 37, and spaces
    /// may follow.
    ///
    /// Enforced by `TrustFile`.
    package static let trustLineBytes = 64

    /// Descriptors without which no work is begun: canopyd at rest has some 20, an exchange up to 30, and
    /// libraries end the process where they get none.
    ///
    /// Enforced by `DescriptorLimit`.
    package static let descriptorsLeast = 64
}
