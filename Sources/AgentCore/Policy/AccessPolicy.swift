/// Who may use the session of a profile: a section `[policy NAME]`.
///
/// Without a section every program of the user may. With one a program has to be named, by its unit
/// or by its file; in a section without rules nobody is: what is meant to keep somebody out is not
/// to let everybody in where a line is missing.
package struct AccessPolicy: Equatable, Sendable {
    /// Full names of services and scopes; a template's, `NAME@.service`, is for all its instances.
    package var allowUnits: [String] = []

    /// Absolute paths.
    package var allowExecutables: [String] = []

    /// Lets nobody in.
    package init() {}

    /// How somebody asks.
    package enum Way: Equatable, Sendable {
        /// At the API's socket.
        case request
        /// At the socket for credentials, as this unit.
        ///
        /// It is systemd that asks, and the unit's program is not running yet: only the unit counts,
        /// and it counts if the process that asks has been put into it. A name in an address anybody
        /// can write.
        case credential(unit: String)
    }

    /// Why a program is refused.
    package enum Denial: Equatable, Sendable {
        /// The section has no rule.
        case noRules
        /// Everything that the rules need is known, and none of them names it.
        case notNamed
        /// No rule names it as far as can be seen; what could not be seen, and why.
        case unknown(executable: Peer.Obscurity?, units: Peer.Obscurity?)
        /// It asked for a unit that it is not in.
        case notInUnit(String)
    }

    /// Why the peer is refused; nil if it may.
    ///
    /// A path in the configuration means the file that it leads to now, links followed: `file` says
    /// which that is, nil if there is none. So neither a file of the same path in a mount namespace
    /// nor a removed one passes for it.
    package func denial(
        of peer: Peer, asking way: Way, file: (String) -> Executable.File?
    ) -> Denial? {
        guard !allowUnits.isEmpty || !allowExecutables.isEmpty else { return .noRules }
        if case .credential(let unit) = way, let units = peer.units.value, units.own != unit {
            return .notInUnit(unit)
        }
        if let units = peer.units.value, units.names.contains(where: isNamed) { return nil }
        var mayBeExecutable = !allowExecutables.isEmpty
        if case .credential = way { mayBeExecutable = false }
        if mayBeExecutable, let executable = peer.executable.value,
            allowExecutables.contains(where: { file($0) == executable.file })
        {
            return nil
        }
        let unseenExecutable = mayBeExecutable ? peer.executable.obscurity : nil
        let unseenUnits = allowUnits.isEmpty ? nil : peer.units.obscurity
        guard unseenExecutable != nil || unseenUnits != nil else { return .notNamed }
        return .unknown(executable: unseenExecutable, units: unseenUnits)
    }

    private func isNamed(_ unit: String) -> Bool {
        allowUnits.contains(unit) || UnitName.template(of: unit).map(allowUnits.contains) == true
    }
}
