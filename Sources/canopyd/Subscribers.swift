internal import AgentCore
internal import LinuxSystem

/// The clients that are told of changes, and what they are told.
final class Subscribers {
    /// Sends an event to a client; of those with one key only the latest matters.
    var publish: (ClientID, _ event: [UInt8], _ coalescingKey: String) -> Void = { _, _, _ in }

    /// Whom each one asked for; nil for every profile.
    private var wishes: [ClientID: ProfileName?] = [:]
    private var events = EventStream()

    /// The present states as events, as long as they are present: thousands who begin to listen at
    /// once, and read slowly, share them.
    private var snapshot: [UInt8]?

    /// Begins to tell a client; returns the present states, its first events.
    func add(_ client: ClientID, wishing name: ProfileName?, states: () -> [ProfileView]) -> [UInt8]
    {
        wishes[client] = .some(name)
        if name == nil, let snapshot { return snapshot }
        var first: [UInt8] = []
        for view in states() where name == nil || view.profile == name {
            first += events.state(view)
        }
        if name == nil { snapshot = first }
        return first
    }

    func remove(_ client: ClientID) {
        wishes[client] = nil
    }

    /// Tells whoever listens what has changed since the profile was told of last.
    func tell(_ profile: ServedProfile, at now: Moment) {
        snapshot = nil
        guard !profile.machine.isUnknown || profile.published != nil else { return }
        let state = profile.machine.state(at: now)
        let generation = profile.machine.session?.position
        let failure = profile.machine.lastFailure?.failure
        let last = profile.published
        guard last?.state != state || last?.generation != generation || last?.failure != failure
        else { return }
        profile.published = (state, generation, failure)
        let listeners = wishes.filter { $0.value == nil || $0.value == profile.name }.keys
        guard !listeners.isEmpty else { return }
        if last?.generation != generation, let generation, let token = profile.machine.access {
            let event = events.rotated(
                profile.name, generation: generation.number, expiresAt: token.life.expiresAt,
                refreshAt: profile.comeBackAt(for: token, now))
            for client in listeners { publish(client, event, "rotated \(profile.name)") }
        }
        let event = events.state(profile.view(at: now))
        for client in listeners { publish(client, event, "state \(profile.name)") }
    }
}
