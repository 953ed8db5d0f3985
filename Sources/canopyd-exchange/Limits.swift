internal import AgentCore

/// The limits of what an exchange asks libraries and the kernel.
extension Limits {
    /// Bytes of a process's command that are looked at: its name is at the beginning, however long it is.
    ///
    /// Enforced by `SecretServiceConnection`.
    static let commandLineBytes = 4096

    /// Characters of a certificate issuer's name that are shown.
    ///
    /// Enforced by `CertificateIssuer`.
    static let shownIssuerCharacters = 200
}
