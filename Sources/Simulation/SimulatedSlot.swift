internal import AgentCore

/// A successor slot: a memory file that lives as long as somebody holds its descriptor.
final class SimulatedSlot {
    enum Contents {
        case empty
        case torn
        case session(StoredSession)
    }

    private(set) var contents = Contents.empty

    /// The number of the token in it; nil for none.
    private(set) var token: Int?

    /// Whether the kernel refuses writes.
    var isUnwritable = false

    var isFull: Bool {
        switch contents {
        case .empty: false
        case .torn, .session: true
        }
    }

    /// A write has begun: until it ends, the slot holds no whole session.
    func tear() {
        contents = .torn
        token = nil
    }

    func fill(_ session: StoredSession) {
        contents = .session(session)
        token = Answers.number(session.refreshToken)
    }

    func empty() {
        contents = .empty
        token = nil
    }
}
