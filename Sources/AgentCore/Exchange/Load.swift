/// Reads one profile at start, without its lock and presenting nothing.
///
/// No lock, because an exchange whose daemon was killed may hold it for minutes, and what it has
/// not stored yet nobody can use: the access token that is stored serves meanwhile.
package struct Load<World: ExchangeWorld> {
    private let world: World

    package init(in world: World) {
        self.world = world
    }

    package func run() throws(World.Interruption) -> ExchangeOutcome {
        let state: StateContents
        switch try world.readState() {
        case .found(let contents): state = contents
        case .failed(let failure): return .failed(failure)
        }
        let item: ItemContents
        switch try world.readItem(knowing: state.signIns) {
        case .found(let contents): item = contents
        case .failed(let failure): return .failed(failure)
        }
        let decision = PresentationGuard.decide(
            PresentationGuard.Evidence(
                slot: .empty, item: item.reading, signIns: state.signIns,
                runtimeMarks: state.runtimeMarks, anchor: state.anchor, now: world.now(),
                boot: world.boot, known: nil, mayPresent: false))
        switch (decision, item) {
        case (.adopt(let ambiguous), .session(let session)):
            return .session(SessionReport(session, isAmbiguous: ambiguous))
        case (.signInRequired(.signedOut), _):
            return .signedOut
        case (.signInRequired(let reason), .session(let session)):
            return .signInRequired(reason, "", account: session.header.account)
        case (.signInRequired(let reason), _):
            return .signInRequired(reason, "")
        case (.adopt, _), (.storeSuccessor, _), (.confirmSuccessor, _), (.dropSuccessor, _),
            (.leaveSuccessor, _), (.present, _), (.wait, _):
            preconditionFailure("the guard did more than look")
        }
    }
}
