/// What systemd says of itself when it connects for a unit's `LoadCredential=NAME:SOCKET`.
///
/// It binds its end to the abstract address `NUL HEX "/unit/" UNIT "/" NAME` (systemd.exec(5)). Any
/// program of the user can bind to such an address: it says what is asked for, and proves nothing.
package struct CredentialRequest: Equatable, Sendable {
    /// The unit that is being started, for the log.
    package let unit: String

    /// The credential's name, which names the profile: see `profile`.
    package let credential: String

    /// The profile that is asked for; nil if the name can be none's.
    ///
    /// `canopy` is the usual profile and `canopy.P` the profile P, so that a unit can name the
    /// credential after what it is; any other name is the profile's own.
    package var profile: ProfileName? {
        if credential == Self.prefix { return .standard }
        let isPrefixed = credential.hasPrefix(Self.prefix + ".")
        do throws(ProfileName.Malformed) {
            return try ProfileName(
                isPrefixed ? String(credential.dropFirst(Self.prefix.count + 1)) : credential)
        } catch {
            return nil
        }
    }

    private static let prefix = "canopy"

    /// Reads the address, without what follows its last byte; nil if it is none of systemd's.
    package init?(address: some Collection<UInt8>) {
        guard address.first == 0 else { return nil }
        // Bytes, not characters: a mark after a slash would make one character with it.
        let parts = Array(address.dropFirst()).split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1].elementsEqual("unit".utf8), !parts[0].isEmpty,
            parts[0].allSatisfy(CredentialRequest.isHexDigit),
            let unit = String(validating: parts[2], as: UTF8.self), !unit.isEmpty,
            let credential = String(validating: parts[3], as: UTF8.self), !credential.isEmpty
        else { return nil }
        self.unit = unit
        self.credential = credential
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
    }
}
