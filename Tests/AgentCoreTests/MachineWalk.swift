import AgentCore

/// A machine that random events happen to, and what must be true after each.
struct MachineWalk {
    private var generator: SeededGenerator
    private var machine: RotationMachine
    private var seconds = 0.0
    private var wallStep = 0.0
    private var generation: Int64 = 0
    /// When the walk's last exchanges that the machine asked for began.
    private var begun: [Double] = []
    private(set) var faults: [String] = []
    private(set) var tokensGiven = 0
    private(set) var offersMade = 0
    private(set) var exchanges = 0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        machine = RotationMachine(
            boot: Example.boot,
            mode: Bool.random(using: &generator) ? .ahead : .onDemand)
    }

    private var now: Moment { Example.moment(seconds, wallStep: wallStep) }

    private mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &generator) < percent
    }

    private mutating func draw() -> Double {
        Double.random(in: 0..<1, using: &generator)
    }

    private var isExchanging: Bool {
        if case .exchanging = machine.phase { true } else { false }
    }

    /// One event, with some time before it.
    mutating func go() {
        passTime()
        if !isExchanging { begin() }
        if isExchanging { exchange() }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: machine.surroundingsChanged(at: now)
        case 1: machine.keyringChanged(at: now)
        case 2:
            let kind: Failure.Kind = chance(50) ? .keyringLocked : .keyringUnavailable
            machine.keyringLost(Failure(kind, "lost"), at: now)
        case 3: _ = machine.rotationForced(at: now)
        case 4: wallStep += Double.random(in: -1e5...1e5, using: &generator)
        case 5:
            machine.modeChanged(to: chance(50) ? .ahead : .onDemand, at: now, draw: draw())
        default: ask()
        }
        check()
    }

    private mutating func passTime() {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: seconds += Double.random(in: 0...2, using: &generator)
        case 1: seconds += Double.random(in: 0...1000, using: &generator)
        default:
            // To the wake-up, as the daemon sleeps.
            if let wakeUp = machine.wakeUp, wakeUp > now.boot {
                seconds += (wakeUp - now.boot).seconds + 1e-6
            }
        }
    }

    private mutating func begin() {
        switch machine.step(at: now.boot) {
        case .nothing:
            guard chance(10) else { return }
            let others: [JobKind] = [.signIn, .signOut, .identity, .sessions, .revokeSession]
            machine.exchangeBegan(
                others.randomElement(using: &generator) ?? .identity, at: now.boot)
        case .load:
            machine.exchangeBegan(.load, at: now.boot)
        case .rotate(let mayPresent):
            if mayPresent, machine.isUnstored { faults.append("presents what is not stored") }
            machine.exchangeBegan(.rotate, at: now.boot)
        }
        exchanges += 1
        begun.append(seconds)
        // Twenty exchanges take their time, or somebody spins: each one ends in this walk at
        // once, and the quickest events still leave half a second.
        if begun.count > 60 {
            begun.removeFirst()
            if seconds - (begun.first ?? 0) < 1 { faults.append("spins") }
        }
    }

    private mutating func exchange() {
        if chance(10) { machine.exchangeProgressed(.presenting, at: now) }
        if chance(10) {
            machine.exchangeProgressed(.retrying(randomFailure()), at: now)
        }
        ask()
        if chance(30) { seconds += Double.random(in: 0...40, using: &generator) }
        if chance(10) { return machine.exchangeDied("killed", at: now, draw: draw()) }
        if chance(10) { return }
        machine.exchangeEnded(randomOutcome(), at: now, draw: draw())
        // A report that comes twice, or after the end.
        if chance(5) { machine.exchangeEnded(randomOutcome(), at: now, draw: draw()) }
    }

    private mutating func randomFailure() -> Failure {
        let kind = Failure.Kind.allCases.randomElement(using: &generator) ?? .noAnswer
        let wait = chance(50) ? Example.span(Double.random(in: 0...990, using: &generator)) : nil
        return Failure(kind, "cause", wait: kind == .throttled ? wait : nil)
    }

    private mutating func randomReport() -> SessionReport {
        if chance(80) { generation += 1 }
        let lifetimes: [Double] = [2, 60, 900, 86_400]
        let lifetime = lifetimes.randomElement(using: &generator) ?? 900
        let boot = chance(90) ? Example.boot : Example.otherBoot
        let age = chance(80) ? 0 : Double.random(in: 0...2000, using: &generator)
        let sent = Stamp(Example.moment(seconds - age, wallStep: wallStep), boot: boot)
        let life = AccessTokenLife(
            lifetime: Example.span(lifetime), sent: sent,
            expiry: chance(50) ? sent.moment.wall + Example.span(lifetime) : nil,
            serverClockOffset: chance(50) ? .zero : nil)
        return Example.report(
            generation, lastRotation: generation == 0 ? nil : sent,
            notBefore: chance(20) ? NotBefore(since: sent, span: .seconds(120)) : nil,
            access: chance(90) ? life : nil, isAmbiguous: chance(10),
            storeFailure: chance(10) ? Failure(.keyringLocked, "locked") : nil)
    }

    private mutating func randomOutcome() -> ExchangeOutcome {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0:
            return .tooEarly(
                randomReport(), Example.span(Double.random(in: 0.001...900, using: &generator)))
        case 1..<6: return .failed(randomFailure())
        case 6:
            let reason = SignInReason.allCases.randomElement(using: &generator) ?? .signedOut
            return .signInRequired(reason, chance(50) ? "words" : "")
        case 7: return .signedOut
        case 8: return .rejected(Rejection(.credentials, "no"))
        case 9: return .document(Example.secret("{}"))
        default: return .session(randomReport())
        }
    }

    private mutating func ask() {
        let validity =
            chance(50) ? nil : Example.span(Double.random(in: 0...1000, using: &generator))
        let isDeadline = chance(20)
        let verdict =
            isDeadline
            ? machine.verdictAtDeadline(minimumValidity: validity, at: now)
            : machine.verdict(minimumValidity: validity, at: now)
        if let offer = machine.offer,
            let remaining = offer.remaining(ifAtLeast: validity, at: now)
        {
            // What lies ready is handed out without asking for the verdict.
            offersMade += 1
            if verdict != machine.access.map(RotationMachine.Verdict.token) {
                faults.append("an offer that the verdict does not know")
            }
            if remaining != machine.access?.life.remaining(at: now, boot: Example.boot) {
                faults.append("an offer of another time than the token has")
            }
        }
        switch verdict {
        case .token(let token):
            tokensGiven += 1
            let life = token.life
            if life.sent.boot != Example.boot { faults.append("a token of another boot") }
            if now.boot - life.sent.moment.boot >= life.lifetime { faults.append("expired") }
            if let expiry = life.expiry, life.serverClockOffset != nil, now.wall >= expiry {
                faults.append("expired by the wall clock")
            }
            if let validity, life.remaining(at: now, boot: Example.boot) < validity {
                faults.append("less than was asked for")
            }
            if case .ended = machine.phase { faults.append("a token after the end") }
        case .wait:
            machine.validityWanted(at: now)
            if !isExchanging, machine.wakeUp == nil { faults.append("waits for ever") }
            if let wakeUp = machine.wakeUp, wakeUp - now.boot > .seconds(1000) {
                faults.append("waits too long: \(machine.phase)")
            }
        case .refused(.failed(_, let retryAfter, _)):
            if retryAfter <= .zero { faults.append("refused although an attempt is due") }
        case .refused(.signInRequired), .refused(.validityAboveLifetime):
            break
        }
    }

    private mutating func check() {
        _ = machine.state(at: now)
        _ = machine.isUnknown
        let step = machine.step(at: now.boot)
        if step == .nothing, let wakeUp = machine.wakeUp, wakeUp <= now.boot {
            faults.append("wakes up for nothing")
        }
        if step != .nothing, machine.wakeUp.map({ $0 > now.boot }) ?? true {
            faults.append("has something to do and sleeps")
        }
        if isExchanging, step != .nothing { faults.append("a second exchange") }
        if case .ended = machine.phase, machine.access != nil {
            faults.append("kept after the end")
        }
    }
}
