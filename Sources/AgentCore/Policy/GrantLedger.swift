/// Which programs have been given a profile's token of the present generation: each is told of in
/// the journal once.
package struct GrantLedger: Sendable {
    /// A program, as somebody who reads the journal tells them apart.
    package struct Program: Hashable, Sendable {
        package let executable: String
        package let unit: String

        /// What is known of the peer; what is not is one program more.
        package init(_ peer: Peer) {
            executable = peer.executable.value?.words ?? "unknown \(peer.name ?? "")"
            unit = peer.units.value?.own ?? ""
        }
    }

    private var generation: Generation?
    private var told: Set<Program> = []

    package init() {}

    /// Notes a grant; whether it is the program's first of the generation.
    ///
    /// Of more programs than are remembered some are told of twice, which the log's own budget bounds.
    package mutating func isFirst(_ program: Program, of generation: Generation) -> Bool {
        if self.generation != generation || told.count >= Limits.grantedPrograms {
            self.generation = generation
            told = []
        }
        return told.insert(program).inserted
    }
}
