internal import AgentCore
internal import LinuxSystem

/// The profiles being served.
final class Agent {
    var deliver: (ClientID, Reply) -> Void = { _, _ in }
    var publish: (ClientID, [UInt8], _ coalescingKey: String) -> Void = { _, _, _ in }
    var connections: () -> Int = { 0 }
    var statistics: () -> RequestStatistics = { RequestStatistics() }

    private let started = WallTime.now
    private(set) var isStopped = false

    init(settings: Settings) {}

    enum Subscription {
        case accepted(initial: [UInt8])
        case refused(Problem)
    }

    func handle(_ route: Route, body: Secret?, from client: ClientID) -> Reply? {
        switch route {
        case .profiles:
            .profiles([])
        case .status:
            .status(
                StatusView(
                    version: Version.text, startedAt: started, keyring: (.ok, nil),
                    connections: connections(), profiles: []))
        case .metrics:
            .metrics(
                MetricsView(
                    version: Version.text, profiles: [], rotations: [], exchanges: [],
                    requests: statistics(), connections: connections(), keyring: .ok))
        case .token(let profile, _, _, _), .profile(let profile), .logIn(let profile),
            .multiFactor(let profile), .refresh(let profile, _, _), .logOut(let profile, _),
            .identity(let profile), .sessions(let profile), .revokeSession(let profile, _):
            Reply(unknown(profile))
        case .events(let profile):
            profile.map { Reply(unknown($0)) } ?? .events
        }
    }

    func subscribe(_ client: ClientID, profile: ProfileName?) -> Subscription {
        guard let profile else { return .accepted(initial: []) }
        return .refused(unknown(profile))
    }

    private func unknown(_ profile: ProfileName) -> Problem {
        Problem(
            .unknownProfile, "nothing is signed in under this name", profile: profile,
            fix: "canopyctl login --profile \(profile)")
    }

    func clientGone(_ client: ClientID) {}
    var nextWakeUp: BootTime? { nil }
    func wake(at now: Moment) {}
    func settingsChanged(_ settings: Settings) {}
    func stop() { isStopped = true }
}
