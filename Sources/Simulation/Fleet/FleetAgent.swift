internal import AgentCore

/// One agent of a fleet: the machine that canopyd has for a profile, and what its keyring and its
/// state directory hold beyond what the machine knows.
struct FleetAgent {
    var machine: RotationMachine
    var mark: Int64?
    var notBefore: NotBefore?
    /// When its first failure since the last grant was.
    var failingSince: Int64?

    init(boot: BootID) {
        machine = RotationMachine(boot: boot)
    }

    /// An agent with a token of which `used`, 0..<1, of the time to its rotation has passed at the
    /// start of the run.
    init(
        boot: BootID, mode: RotationMachine.Mode, lifetime: TimeSpan, used: Double, draw: Double
    ) {
        machine = RotationMachine(boot: boot, mode: mode)
        let start = FleetExchange.moment(0)
        let interval =
            switch mode {
            case .ahead: RotationTiming.rotationPoint(lifetime: lifetime, draw: draw)
            case .onDemand: RotationTiming.onDemandKeepAlive
            }
        let age = interval * used
        let sent = Stamp(
            Moment(
                boot: BootTime(nanoseconds: start.boot.nanoseconds - age.nanoseconds),
                wall: start.wall - age),
            boot: boot)
        let token = AccessToken(
            value: FleetAgent.token, type: "Bearer",
            life: AccessTokenLife(
                lifetime: lifetime, sent: sent, expiry: nil, serverClockOffset: nil))
        var header = FleetAgent.header
        header.lastRotation = sent
        header.access = token.life
        machine.exchangeBegan(.load, at: start.boot)
        machine.exchangeEnded(
            .session(
                SessionReport(
                    header: header, accessToken: token, isAmbiguous: false, storeFailure: nil)),
            at: start, draw: draw)
    }

    private static let token = Answers.secret("o.0")

    /// What is the same for all of them.
    static let header = SessionHeader(
        signIn: SignInID(high: 1, low: 1), generation: 1, baseURL: "https://canopy.test",
        publishableKey: "pk", identity: Identity(id: "id", email: ""),
        signedInAt: WallTime(seconds: 0),
        anchor: Anchor(inode: 1, birth: 1))
}
