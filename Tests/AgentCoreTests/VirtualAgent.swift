import AgentCore

/// The daemon's decisions and its exchanges in a world of their own, where time passes at once.
///
/// Whatever is due is done by the real machine and the real rotation; only the world is scripted.
final class VirtualAgent {
    private(set) var machine: RotationMachine
    let world: ScriptedWorld
    private var generator: SeededGenerator

    /// When refresh tokens were presented, in seconds.
    private(set) var presented: [Double] = []

    /// What a draw is; nil for chance.
    var draw: Double?

    /// Signed in at 0, with a token of 900 s.
    init(seed: UInt64, mode: RotationMachine.Mode = .ahead) {
        generator = SeededGenerator(seed: seed)
        world = ScriptedWorld(Example.session(0))
        machine = RotationMachine(boot: Example.boot, mode: mode)
        cutNetwork { _ in nil }
    }

    var now: Moment { Example.moment(world.elapsed) }

    /// What comes of requests from now on; nil lets one through.
    func cutNetwork(_ network: @escaping (Double) -> Transmission?) {
        world.network = { [unowned self] seconds in
            presented.append(seconds)
            return network(seconds)
        }
    }

    /// Time passes and whatever is due is done.
    func run(until end: Double) {
        while true {
            switch machine.step(at: now.boot) {
            case .nothing:
                guard let wakeUp = machine.wakeUp, wakeUp < Example.moment(end).boot else {
                    return sleep(until: max(end, world.elapsed))
                }
                // To the next microsecond: seconds as floating point are not exact.
                world.restart(after: max(0, (wakeUp - now.boot).seconds) + 1e-6)
            case .load:
                machine.exchangeBegan(.load, at: now.boot)
                finish { () throws(ScriptedWorld.Killed) in try Load(in: world).run() }
            case .rotate(let mayPresent):
                machine.exchangeBegan(.rotate, at: now.boot)
                finish { () throws(ScriptedWorld.Killed) in
                    try Rotation(
                        in: world, known: machine.session?.position, mayPresent: mayPresent
                    ).run()
                }
            }
        }
    }

    /// Time passes and nobody runs: a suspend.
    func sleep(until end: Double) {
        world.restart(after: end - world.elapsed)
    }

    /// The machine woke up, or the network changed.
    func surroundingsChanged() { machine.surroundingsChanged(at: now) }

    /// The daemon is started anew.
    func restart() {
        machine = RotationMachine(boot: Example.boot, mode: machine.mode)
    }

    /// A client asks for a token, and goes on waiting if it is told to.
    func ask() -> RotationMachine.Verdict {
        let verdict = machine.verdict(minimumValidity: nil, at: now)
        if verdict == .wait { machine.validityWanted(at: now) }
        return verdict
    }

    private func finish(_ exchange: () throws(ScriptedWorld.Killed) -> ExchangeOutcome) {
        world.restart()
        do throws(ScriptedWorld.Killed) {
            let outcome = try exchange()
            let draw = draw ?? Double.random(in: 0..<1, using: &generator)
            machine.exchangeEnded(outcome, at: now, draw: draw)
        } catch {
            preconditionFailure("nobody kills here")
        }
    }
}
