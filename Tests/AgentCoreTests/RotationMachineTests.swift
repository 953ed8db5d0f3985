import AgentCore
import Testing

@Suite("When a profile rotates, and what its clients are told")
struct RotationMachineTests {
    private static func machine(mode: RotationMachine.Mode = .ahead) -> RotationMachine {
        RotationMachine(boot: Example.boot, mode: mode)
    }

    /// A machine that loaded a session of generation 3; its token is good for 900 s from 0 on.
    private static func resting(
        mode: RotationMachine.Mode = .ahead, report: SessionReport = Example.report(3)
    ) -> RotationMachine {
        var machine = machine(mode: mode)
        machine.exchangeBegan(.load, at: Example.moment().boot)
        machine.exchangeEnded(.session(report), at: Example.moment(), draw: 0.5)
        return machine
    }

    /// A machine whose rotation at so many seconds failed.
    private static func paused(
        _ kind: Failure.Kind, wait: TimeSpan? = nil, at seconds: Double = 720, draw: Double = 0
    ) -> RotationMachine {
        var machine = resting()
        machine.exchangeBegan(.rotate, at: Example.moment(seconds).boot)
        machine.exchangeEnded(
            .failed(Failure(kind, "cause", wait: wait)), at: Example.moment(seconds), draw: draw)
        return machine
    }

    private static func fail(
        _ machine: inout RotationMachine, _ kind: Failure.Kind, at seconds: Double, draw: Double
    ) {
        machine.exchangeBegan(.rotate, at: Example.moment(seconds).boot)
        machine.exchangeEnded(
            .failed(Failure(kind, "cause")), at: Example.moment(seconds), draw: draw)
    }

    private static func gives(
        _ machine: RotationMachine, _ validity: Double? = nil, at seconds: Double
    ) -> String {
        named(
            machine.verdict(
                minimumValidity: validity.map(Example.span), at: Example.moment(seconds)))
    }

    private static func named(_ verdict: RotationMachine.Verdict) -> String {
        switch verdict {
        case .token: "token"
        case .wait: "wait"
        case .refused(.failed(let failure, _, _)): "\(failure.kind)"
        case .refused(.signInRequired(let reason)): reason.rawValue
        case .refused(.validityAboveLifetime): "above"
        }
    }

    private func step(_ machine: RotationMachine, at seconds: Double) -> RotationMachine.Step {
        machine.step(at: Example.moment(seconds).boot)
    }

    // MARK: The ordinary course

    @Test("It reads first, then rests to the rotation point, rotates, and rests again")
    func course() {
        var machine = Self.machine()
        #expect(step(machine, at: 0) == .load && machine.state(at: Example.moment()) == .refreshing)
        machine = Self.resting()
        #expect(machine.state(at: Example.moment()) == .active)
        #expect(machine.rotationPoint == Example.moment(720).boot)
        #expect(machine.wakeUp == machine.rotationPoint)
        #expect(step(machine, at: 719.9) == .nothing)
        #expect(step(machine, at: 720) == .rotate(mayPresent: true))
        machine.exchangeBegan(.rotate, at: Example.moment(720).boot)
        #expect(machine.state(at: Example.moment(720)) == .refreshing)
        #expect(step(machine, at: 730) == .nothing && machine.wakeUp == nil)
        #expect(Self.gives(machine, at: 730) == "token")
        machine.exchangeEnded(
            .session(Example.report(4, access: Example.life(sent: 720))),
            at: Example.moment(721), draw: 0)
        #expect(machine.wakeUp == Example.moment(720 + 675).boot)
        #expect(machine.session?.generation == 4)
    }

    @Test("A draw is made once per token: looking at the same one again moves nothing")
    func drawnOnce() {
        var machine = Self.resting()
        machine.exchangeBegan(.load, at: Example.moment(10).boot)
        machine.exchangeEnded(.session(Example.report(3)), at: Example.moment(10), draw: 0.999)
        #expect(machine.wakeUp == Example.moment(720).boot)
    }

    @Test("A token that is over when it comes is replaced ever more slowly, not at each floor")
    func overOnArrival() {
        var machine = Self.resting()
        machine.exchangeBegan(.rotate, at: Example.moment(720).boot)
        let over = Example.report(
            4, lastRotation: Example.stamp(720),
            access: Example.life(sent: 720, expiry: 700, offset: 0))
        machine.exchangeEnded(.session(over), at: Example.moment(721), draw: 0.5)
        #expect(machine.session?.generation == 4)
        #expect(machine.state(at: Example.moment(721)) == .offline)
        #expect(Self.gives(machine, at: 721) == "serverError")
    }

    @Test("What may have been presented by an exchange that died is rotated at once")
    func ambiguous() {
        let machine = Self.resting(report: Example.report(3, isAmbiguous: true))
        #expect(step(machine, at: 0) == .rotate(mayPresent: true))
        #expect(Self.gives(machine, at: 0) == "token")
    }

    @Test("A token of another boot is not handed out, and is rotated at once")
    func otherBoot() {
        let machine = Self.resting(
            report: Example.report(3, access: Example.life(boot: Example.otherBoot)))
        #expect(machine.access == nil && Self.gives(machine, at: 0) == "wait")
        #expect(step(machine, at: 0) == .rotate(mayPresent: true))
    }

    @Test("What comes too early is due when the wait is over")
    func tooEarly() {
        for access in [Example.life(), Example.life(boot: Example.otherBoot), nil] {
            var machine = Self.resting()
            machine.exchangeBegan(.rotate, at: Example.moment(720).boot)
            machine.exchangeEnded(
                .tooEarly(
                    Example.report(3, lastRotation: Example.stamp(-9), access: access),
                    .seconds(100)), at: Example.moment(720), draw: 0)
            #expect(machine.wakeUp == Example.moment(820).boot)
        }
    }

    @Test("A server whose answers have no usable access token is asked ever more slowly")
    func noAccessToken() {
        var machine = Self.resting()
        var last = TimeSpan.zero
        for generation: Int64 in 4..<12 {
            let now = Example.moment(Double(generation) * 1000)
            machine.exchangeBegan(.rotate, at: now.boot)
            machine.exchangeEnded(
                .session(
                    Example.report(
                        generation, lastRotation: Stamp(now, boot: Example.boot), access: nil)),
                at: now, draw: 0.9)
            #expect(Self.gives(machine, at: Double(generation) * 1000) == "serverError")
            let wait = (machine.wakeUp ?? now.boot) - now.boot
            #expect(wait > last || wait >= .seconds(250))
            last = wait
        }
    }

    @Test("A token that is over when it comes tells whose clock is to be looked at")
    func clocks() {
        let year = 31_556_952.0
        for (expiry, offset, words) in [
            (
                900, 30 * year,
                "that is 30 years ahead of this machine's clock, and the token's times are in step with "
                    + "it; look at the server's clock, or a proxy's that writes the date"
            ),
            (
                900 - 3 * 86_400, 20,
                "that is in step with this machine's clock, and the token's times are 3 days behind it; "
                    + "look at the clock of the server that makes the tokens"
            ),
            (
                900 + 7200, 5 * year,
                "that is 5 years ahead of this machine's clock, and the token's times are 2 h ahead of it; "
                    + "look at this machine's clock first, then at the server's"
            ),
        ] as [(Double, Double, String)] {
            var machine = Self.resting()
            let access = Example.life(expiry: expiry, offset: offset)
            machine.exchangeBegan(.rotate, at: Example.moment().boot)
            machine.exchangeEnded(
                .session(Example.report(4, lastRotation: Example.stamp(), access: access)),
                at: Example.moment(1), draw: 0)
            #expect(
                machine.lastFailure?.failure.detail
                    == "the access token that came is over already, by the server's own date: \(words)"
            )
        }
        // Where they agree, it is something else.
        #expect(ClockDisagreement(Example.life(expiry: 900, offset: 899)) == nil)
        #expect(ClockDisagreement(Example.life(expiry: 900)) == nil)
        #expect(ClockDisagreement(Example.life(offset: 31_556_952)) == nil)
    }

    // MARK: Clients

    @Test("A token is given with as much validity as was asked for, past its rotation point too")
    func verdicts() {
        let machine = Self.resting()
        for (validity, seconds, expected) in [
            (nil, 0, "token"), (nil, 869, "token"), (nil, 870, "token"), (nil, 870.1, "wait"),
            (nil, 900, "wait"), (nil, 2000, "wait"), (0, 899.9, "token"), (0, 900, "wait"),
            (600, 300, "token"), (600, 300.1, "wait"), (900, 0, "token"), (900, 0.1, "wait"),
            (901, 0, "above"), (901, 2000, "above"),
        ] as [(Double?, Double, String)] {
            #expect(Self.gives(machine, validity, at: seconds) == expected)
        }
    }

    @Test("At the deadline the last seconds are better than nothing, unless more was asked for")
    func deadline() {
        var machine = Self.resting()
        machine.exchangeBegan(.rotate, at: Example.moment(890).boot)
        for (validity, seconds, expected) in [
            (nil, 899.9, "token"), (nil, 900, "wait"), (5, 899.9, "wait"), (0, 899.9, "token"),
        ] as [(Double?, Double, String)] {
            #expect(
                Self.named(
                    machine.verdictAtDeadline(
                        minimumValidity: validity.map(Example.span), at: Example.moment(seconds)))
                    == expected)
        }
    }

    @Test("While backing off, what cannot be served fails at once, and good seconds are served")
    func backingOff() {
        let machine = Self.paused(.noAnswer, at: 890)
        #expect(Self.gives(machine, at: 890.5) == "token")
        #expect(Self.gives(machine, 20, at: 890.5) == "noAnswer")
        #expect(Self.gives(Self.paused(.noAnswer, at: 899.5), at: 900) == "noAnswer")
    }

    @Test("Once the pause is over, a client waits for the attempt that is due")
    func pauseOver() {
        let machine = Self.paused(.noAnswer, at: 950)
        #expect(Self.gives(machine, at: 950.9) == "noAnswer")
        #expect(Self.gives(machine, at: 951) == "wait")
        #expect(step(machine, at: 951) == .rotate(mayPresent: true))
    }

    @Test("A client that wants more rotates now, but not before floor and hold")
    func validityWanted() {
        var machine = Self.resting()
        machine.validityWanted(at: Example.moment(100))
        #expect(step(machine, at: 100) == .rotate(mayPresent: true))
        var floored = Self.resting(report: Example.report(3, lastRotation: Example.stamp()))
        floored.validityWanted(at: Example.moment(1))
        #expect(floored.wakeUp == Example.moment(5).boot)
        var held = Self.resting(
            report: Example.report(
                3, lastRotation: Example.stamp(),
                notBefore: NotBefore(since: Example.stamp(), span: .seconds(120))))
        held.validityWanted(at: Example.moment(1))
        #expect(held.wakeUp == Example.moment(120).boot)
        held.validityWanted(at: Example.moment(300))
        #expect(held.wakeUp == Example.moment(120).boot)
    }

    // MARK: Forced

    @Test("A forced rotation happens, but not within floor, hold, throttle, or after a verdict")
    func forced() {
        func forced(_ machine: RotationMachine, at seconds: Double) -> Bool {
            var machine = machine
            let isForced = machine.rotationForced(at: Example.moment(seconds))
            if isForced, case .resting = machine.phase {
                #expect(step(machine, at: seconds) == .rotate(mayPresent: true))
            }
            if isForced, case .paused = machine.phase {
                #expect(step(machine, at: seconds) != .nothing)
            }
            return isForced
        }
        #expect(forced(Self.machine(), at: 0) && forced(Self.resting(), at: 0))
        let rotated = Self.resting(report: Example.report(3, lastRotation: Example.stamp()))
        #expect(!forced(rotated, at: 4.9) && forced(rotated, at: 5))
        let held = Self.resting(
            report: Example.report(
                3, notBefore: NotBefore(since: Example.stamp(), span: .seconds(120))))
        #expect(!forced(held, at: 119) && forced(held, at: 120))
        var running = Self.resting()
        running.exchangeBegan(.rotate, at: Example.moment(1).boot)
        #expect(forced(running, at: 1))
        #expect(!forced(Self.paused(.throttled, wait: .seconds(60)), at: 730))
        #expect(forced(Self.paused(.throttled), at: 730))
        for kind in Failure.Kind.allCases where kind != .throttled && kind != .lockBusy {
            #expect(!forced(Self.paused(kind), at: 720.5), "nobody makes it spin")
            #expect(forced(Self.paused(kind), at: 721))
        }
        for reason in SignInReason.allCases {
            var ended = Self.resting()
            ended.exchangeBegan(.rotate, at: Example.moment(1).boot)
            ended.exchangeEnded(.signInRequired(reason, "words"), at: Example.moment(1), draw: 0)
            #expect(forced(ended, at: 2) == !reason.isFinal)
        }
    }

    // MARK: Failures

    @Test("Every failure, with a good token and without", arguments: Failure.Kind.allCases)
    func states(_ kind: Failure.Kind) {
        let expected: (good: ProfileState, bad: ProfileState) =
            switch kind {
            case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled,
                .lockBusy:
                (.degraded, .offline)
            case .refused, .notNative: (.refused, .refused)
            case .keyringLocked: (.keyringLocked, .keyringLocked)
            case .keyringUnavailable: (.keyringUnavailable, .keyringUnavailable)
            case .storageFailed, .exchangeFailed: (.storageFailed, .storageFailed)
            case .successorUnstored: (.degraded, .keyringUnavailable)
            }
        var machine = Self.paused(kind)
        #expect(machine.state(at: Example.moment(720)) == expected.good)
        #expect(machine.state(at: Example.moment(900)) == expected.bad)
        #expect(Self.gives(machine, at: 720) == "token")
        #expect(machine.lastFailure?.failure.kind == kind)
        // A question to the server in between changes nothing of it.
        machine.exchangeBegan(.sessions, at: Example.moment(720).boot)
        #expect(machine.state(at: Example.moment(720)) == expected.good)
        machine.exchangeEnded(.document(Example.secret("{}")), at: Example.moment(721), draw: 0)
        #expect(machine.state(at: Example.moment(721)) == expected.good)
        // Nor does one that dies, or fails.
        machine.exchangeBegan(.identity, at: Example.moment(721).boot)
        machine.exchangeDied("killed", at: Example.moment(721), draw: 0)
        #expect(machine.state(at: Example.moment(721)) == expected.good)
        // While the exchange tries again by itself, that is what is told.
        var retrying = Self.resting()
        retrying.exchangeBegan(.rotate, at: Example.moment(720).boot)
        retrying.exchangeProgressed(
            .retrying(Failure(kind, "cause")), at: Example.moment(720))
        #expect(retrying.state(at: Example.moment(720)) == expected.good)
        #expect(retrying.state(at: Example.moment(900)) == expected.bad)
        #expect(Self.gives(retrying, at: 900) == "wait")
    }

    @Test("Back-off grows to its ceiling, and ends with a success")
    func backOff() {
        for (kind, first, ceiling) in [
            (Failure.Kind.noAnswer, 4.0, 720.0), (.serverError, 4, 720), (.throttled, 4, 720),
            (.lockBusy, 3, 60), (.keyringLocked, 3, 60),
        ] {
            var machine = Self.resting()
            var waits: [Double] = []
            for attempt in 0..<12 {
                let now = Double(1000 + attempt * 1000)
                Self.fail(&machine, kind, at: now, draw: 0.99)
                waits.append(
                    ((machine.wakeUp ?? .distantFuture) - Example.moment(now).boot).seconds)
            }
            #expect(waits[0] < first)
            #expect(waits.prefix(4) == waits.sorted().prefix(4))
            #expect(waits[11] > ceiling * 0.95 && waits[11] <= ceiling)
            machine.exchangeBegan(.rotate, at: Example.moment(20_000).boot)
            machine.exchangeEnded(
                .session(Example.report(4, access: Example.life(sent: 20_000))),
                at: Example.moment(20_000), draw: 0)
            // The token is over, or it would be used up first.
            Self.fail(&machine, kind, at: 20_900, draw: 0.99)
            #expect((machine.wakeUp ?? .distantFuture) < Example.moment(20_904).boot)
        }
    }

    @Test("A token that still serves is time to spread in, unless somebody wants another")
    func leisure() {
        // It serves for 150 s more.
        let wakeUp = Self.paused(.serverError, at: 720, draw: 0.5).wakeUp
        #expect(wakeUp == Example.moment(720 + 75.5).boot)
        // A wait that was short by chance does not make those after the token's end short.
        var machine = Self.paused(.serverError, at: 720, draw: 0)
        Self.fail(&machine, .serverError, at: 870, draw: 0.5)
        #expect(machine.wakeUp == Example.moment(870 + 300.5).boot)
        // The keyring's failures are nobody else's.
        let local = Self.paused(.keyringLocked, at: 720, draw: 0.99).wakeUp ?? .distantFuture
        #expect(local < Example.moment(723).boot)
        // At 500 s it was asked for ahead of its time.
        let early = Self.paused(.serverError, at: 500, draw: 0.99).wakeUp ?? .distantFuture
        #expect(early < Example.moment(504).boot)
    }

    @Test("A server that has failed before is given more time than it asks for")
    func toldAgain() {
        var machine = Self.resting()
        for attempt in 0..<9 {
            Self.fail(&machine, .noAnswer, at: 1000 + 1000 * Double(attempt), draw: 0.5)
        }
        machine.exchangeBegan(.rotate, at: Example.moment(20_000).boot)
        machine.exchangeEnded(
            .failed(Failure(.throttled, "wait", wait: .seconds(30))), at: Example.moment(20_000),
            draw: 0)
        #expect(machine.wakeUp == Example.moment(20_000 + 30 + 540).boot)
    }

    @Test(
        "With a long-lived token, the rotation after an outage is spread over all of its interval")
    func recovery() {
        let hour = Example.life(3600, sent: 0)
        let next = Example.life(3600, sent: 4000)
        for (failures, share) in [(0, 0.75), (1, 0.30)] {
            var machine = Self.resting(report: Example.report(3, access: hour))
            for _ in 0..<failures { Self.fail(&machine, .noAnswer, at: 3900, draw: 0) }
            machine.exchangeBegan(.rotate, at: Example.moment(4000).boot)
            machine.exchangeEnded(
                .session(Example.report(4, access: next)), at: Example.moment(4000), draw: 0)
            #expect(machine.rotationPoint == Example.moment(4000 + 3600 * share).boot)
        }
    }

    @Test("Who asks while another exchange has the lock waits for it, and makes nobody spin")
    func lockBusy() {
        var machine = Self.paused(.lockBusy, at: 890, draw: 0.99)
        #expect(Self.gives(machine, at: 890.5) == "token")
        #expect(Self.gives(machine, 20, at: 890.5) == "wait")
        #expect(Self.gives(machine, at: 900) == "wait")
        #expect(machine.state(at: Example.moment(900)) == .offline)
        let forced = machine.rotationForced(at: Example.moment(890.5))
        #expect(forced && machine.wakeUp == Example.moment(891).boot)
        // It is local, so the wait stays below a minute.
        var last = machine
        for attempt in 1...9 {
            Self.fail(&last, .lockBusy, at: 890 + Double(attempt) * 100, draw: 0.99)
        }
        #expect((last.wakeUp ?? .distantFuture) <= Example.moment(1790 + 60).boot)
    }

    @Test("A wait that the server told is kept to; a refusal is tried again after 15 minutes")
    func toldWaits() {
        #expect(
            Self.paused(.throttled, wait: .seconds(77)).wakeUp == Example.moment(797).boot)
        #expect(Self.paused(.refused).wakeUp == Example.moment(720 + 900).boot)
        // A session that delivers by cookie is of no use to anybody here, however often it is asked.
        #expect(Self.paused(.notNative).wakeUp == .distantFuture)
    }

    @Test("An unstored successor serves, and nothing is presented until it is stored")
    func unstored() {
        let failure = Failure(.keyringLocked, "locked")
        var machine = Self.resting()
        // The network failed for long before.
        for attempt in 0..<9 {
            Self.fail(&machine, .noAnswer, at: Double(720 + attempt * 400), draw: 0.99)
        }
        machine.exchangeBegan(.rotate, at: Example.moment(5000).boot)
        machine.exchangeEnded(
            .session(
                Example.report(4, access: Example.life(sent: 5000), storeFailure: failure)),
            at: Example.moment(5000), draw: 0.9)
        #expect(machine.isUnstored && machine.state(at: Example.moment(5000)) == .degraded)
        #expect(Self.gives(machine, at: 5000) == "token")
        // Its own back-off starts from a second.
        let due = machine.wakeUp ?? .distantFuture
        #expect(due <= Example.moment(5003).boot)
        #expect(machine.step(at: due) == .rotate(mayPresent: false))
        // An exchange that dies in storing it makes nobody present either.
        machine.exchangeBegan(.rotate, at: due)
        machine.exchangeDied("killed", at: Example.moment(5003), draw: 0)
        #expect(step(machine, at: 5004) == .rotate(mayPresent: false))
        // Nor does a keyring that is found locked in the attempt, after the rotation point too.
        var locked = machine
        locked.exchangeBegan(.rotate, at: Example.moment(5004).boot)
        locked.exchangeEnded(.failed(failure), at: Example.moment(5004), draw: 0)
        #expect(step(locked, at: 9000) == .rotate(mayPresent: false))
        // Nor does a client.
        machine.validityWanted(at: Example.moment(5003))
        _ = machine.rotationForced(at: Example.moment(5005))
        #expect(step(machine, at: 5005) == .rotate(mayPresent: false))
        machine.exchangeBegan(.rotate, at: Example.moment(5005).boot)
        machine.exchangeEnded(
            .session(Example.report(4, access: Example.life(sent: 5000))),
            at: Example.moment(5005), draw: 0.9)
        #expect(!machine.isUnstored && machine.state(at: Example.moment(5005)) == .active)
        #expect(step(machine, at: 5600) == .nothing)
    }

    @Test("What puts the torn slot of a dead exchange in order makes the next one no sooner")
    func tornSlotAfterDeath() {
        var machine = Self.resting()
        var now = 720.0
        var waits: [Double] = []
        for _ in 0..<12 {
            machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
            machine.exchangeProgressed(.presenting, at: Example.moment(now))
            machine.exchangeDied(
                "killed", holdsSuccessor: true, at: Example.moment(now), draw: 0.99)
            waits.append(
                ((machine.wakeUp ?? .distantFuture) - Example.moment(now).boot).seconds)
            // Past what adding fractions loses.
            now += (waits.last ?? 0) + 0.001
            #expect(step(machine, at: now) == .rotate(mayPresent: false))
            machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
            machine.exchangeEnded(
                .session(Example.report(3, isAmbiguous: true)), at: Example.moment(now), draw: 0)
            // The grace is short.
            #expect(step(machine, at: now) == .rotate(mayPresent: true))
            #expect(machine.state(at: Example.moment(now)) != .active)
        }
        #expect(waits.prefix(4) == [0.5, 1, 2, 4])
        for (last, wait) in zip(waits.dropFirst(4), waits.dropFirst(5)) {
            #expect(wait > last || wait > 58, "\(waits)")
        }
        // One that has told its end has ended the row.
        machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
        machine.exchangeProgressed(.presenting, at: Example.moment(now))
        machine.exchangeEnded(
            .session(Example.report(4, access: Example.life(sent: now))), at: Example.moment(now),
            draw: 0)
        machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
        machine.exchangeDied("killed", at: Example.moment(now), draw: 0.99)
        #expect(machine.wakeUp == Example.moment(now + 0.5).boot)
    }

    @Test("An exchange that dies is repeated after 0.5, 1, 2 and 4 s, then backed off from")
    func deaths() {
        var machine = Self.resting()
        var now = 720.0
        for wait in [0.5, 1, 2, 4] {
            machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
            machine.exchangeProgressed(.presenting, at: Example.moment(now))
            machine.exchangeDied("killed", at: Example.moment(now), draw: 0.5)
            #expect(machine.wakeUp == Example.moment(now + wait).boot)
            #expect(machine.isRepeating, "a question would come between")
            // Nor does a client shorten the wait.
            machine.validityWanted(at: Example.moment(now))
            let forced = machine.rotationForced(at: Example.moment(now))
            #expect(forced && machine.wakeUp == Example.moment(now + wait).boot)
            #expect(machine.state(at: Example.moment(now)) == .degraded)
            #expect(machine.lastFailure?.failure.kind == .noAnswer)
            now += wait
        }
        var last = TimeSpan.zero
        for _ in 0..<8 {
            machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
            machine.exchangeDied("killed", at: Example.moment(now), draw: 0.99)
            let wait = (machine.wakeUp ?? .distantFuture) - Example.moment(now).boot
            #expect(!machine.isRepeating)
            #expect(wait > last || wait > .seconds(58))
            #expect(wait <= .seconds(60))
            last = wait
            now += wait.seconds
        }
        #expect(machine.lastFailure?.failure.kind == .exchangeFailed)
        machine.exchangeBegan(.rotate, at: Example.moment(now).boot)
        machine.exchangeEnded(
            .session(Example.report(4, access: Example.life(sent: now))),
            at: Example.moment(now), draw: 0)
        machine.exchangeBegan(.rotate, at: Example.moment(now + 700).boot)
        machine.exchangeDied("killed", at: Example.moment(now + 700), draw: 0)
        #expect(machine.wakeUp == Example.moment(now + 700.5).boot)
    }

    @Test("A load that dies is repeated as a load; a sign-in or sign-out that dies is read again")
    func deadLoad() {
        var machine = Self.machine()
        for wait in [0.5, 1, 2, 4] {
            machine.exchangeBegan(.load, at: Example.moment().boot)
            machine.exchangeDied("killed", at: Example.moment(), draw: 0)
            #expect(step(machine, at: wait) == .load)
        }
        for job in [JobKind.signIn, .signOut] {
            var machine = Self.resting()
            machine.exchangeBegan(job, at: Example.moment(1).boot)
            machine.exchangeDied("killed", at: Example.moment(1), draw: 0)
            #expect(step(machine, at: 1) == .load)
            #expect(Self.gives(machine, at: 1) == "token")
        }
    }

    @Test("Late news of an exchange that was given up is dropped")
    func lateNews() {
        var machine = Self.resting()
        let phase = machine.phase
        machine.exchangeProgressed(.presenting, at: Example.moment(1))
        machine.exchangeEnded(.signedOut, at: Example.moment(1), draw: 0)
        machine.exchangeDied("killed", at: Example.moment(1), draw: 0)
        #expect(machine.phase == phase)
    }

    // MARK: Surroundings

    @Test("A resume or a new network wakes what failed for want of it, once a second at most")
    func surroundings() {
        for kind in Failure.Kind.allCases {
            var machine = Self.paused(kind, draw: 0.999)
            let due = machine.wakeUp
            machine.surroundingsChanged(at: Example.moment(720.25))
            switch kind {
            case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .lockBusy:
                #expect(machine.wakeUp == Example.moment(721).boot)
                machine.surroundingsChanged(at: Example.moment(722))
                #expect(step(machine, at: 721) == .rotate(mayPresent: true))
                #expect(Self.gives(machine, 300, at: 721) == "wait")
            case .throttled, .refused, .notNative, .keyringLocked, .keyringUnavailable,
                .storageFailed, .successorUnstored, .exchangeFailed:
                #expect(machine.wakeUp == due)
            }
        }
        var throttled = Self.paused(.throttled, wait: .seconds(60))
        throttled.surroundingsChanged(at: Example.moment(721))
        #expect(throttled.wakeUp == Example.moment(780).boot)
    }

    @Test(
        "A network that is back while an exchange is still failing for want of it is news all the same"
    )
    func changeWithin() {
        func paused(changed: Bool, _ end: (inout RotationMachine, Moment) -> Void)
            -> RotationMachine
        {
            var machine = Self.paused(.serverError, draw: 0.999)
            let began = machine.wakeUp ?? Example.moment(720).boot
            machine.exchangeBegan(.rotate, at: began)
            if changed { machine.surroundingsChanged(at: Example.moment(730)) }
            end(&machine, Example.moment(735))
            return machine
        }
        let ends: [(inout RotationMachine, Moment) -> Void] = [
            { $0.exchangeEnded(.failed(Failure(.notPresented, "no route")), at: $1, draw: 0.999) },
            { $0.exchangeEnded(.failed(Failure(.noAnswer, "reset")), at: $1, draw: 0.999) },
        ]
        for end in ends {
            #expect(paused(changed: true, end).wakeUp == Example.moment(736).boot)
            #expect(
                paused(changed: false, end).wakeUp ?? Example.moment().boot
                    > Example.moment(737).boot)
        }
        // What did not fail for want of it waits as it would.
        let refused = paused(changed: true) {
            $0.exchangeEnded(.failed(Failure(.refused, "no")), at: $1, draw: 0)
        }
        #expect(refused.wakeUp == Example.moment(735).boot + RotationTiming.refusedRetry)
        // Nor does a question hide it.
        for isDead in [true, false] {
            var asked = Self.paused(.notPresented, draw: 0.999)
            asked.exchangeBegan(.identity, at: Example.moment(720.5).boot)
            asked.surroundingsChanged(at: Example.moment(720.6))
            if isDead {
                asked.exchangeDied("killed", at: Example.moment(720.7), draw: 0)
            } else {
                asked.exchangeEnded(
                    .failed(Failure(.noAnswer, "reset")), at: Example.moment(720.7), draw: 0)
            }
            #expect(asked.wakeUp == Example.moment(721.7).boot)
        }
    }

    @Test("A keyring event wakes what failed for want of it, and looks at what is not final again")
    func keyring() {
        for kind in Failure.Kind.allCases {
            var machine = Self.paused(kind)
            machine.keyringChanged(at: Example.moment(720.1))
            switch kind {
            case .keyringLocked, .keyringUnavailable, .storageFailed, .successorUnstored:
                #expect(step(machine, at: 720.1) != .nothing)
            case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled,
                .refused, .notNative, .lockBusy, .exchangeFailed:
                #expect(step(machine, at: 720.1) == .nothing)
            }
        }
        for reason in SignInReason.allCases {
            var machine = Self.machine()
            machine.exchangeBegan(.load, at: Example.moment().boot)
            machine.exchangeEnded(.signInRequired(reason, ""), at: Example.moment(), draw: 0)
            #expect(Self.gives(machine, at: 1) == reason.rawValue)
            #expect(machine.state(at: Example.moment(1)) == .signInRequired)
            machine.keyringChanged(at: Example.moment(1))
            #expect(step(machine, at: 1) == (reason.isFinal ? .nothing : .load))
        }
        var resting = Self.resting()
        resting.keyringLost(Failure(.keyringLocked, "locked"), at: Example.moment(1))
        #expect(resting.state(at: Example.moment(1)) == .keyringLocked)
        #expect(Self.gives(resting, at: 1) == "token")
    }

    @Test("A keyring that may have changed is read again, and until then nothing is different")
    func doubted() {
        var machine = Self.resting()
        let due = machine.wakeUp
        machine.keyringDoubted()
        #expect(step(machine, at: 1) == .load)
        #expect(machine.state(at: Example.moment(1)) == .active)
        #expect(Self.gives(machine, at: 1) == "token")
        machine.exchangeBegan(.load, at: Example.moment(1).boot)
        #expect(machine.state(at: Example.moment(1)) == .active)
        var locked = machine
        machine.exchangeEnded(.session(Example.report(3)), at: Example.moment(2), draw: 0.1)
        #expect(machine.wakeUp == due)
        locked.exchangeEnded(
            .failed(Failure(.keyringLocked, "locked")), at: Example.moment(2), draw: 0)
        #expect(locked.state(at: Example.moment(2)) == .keyringLocked)
        #expect(Self.gives(locked, at: 2) == "token")
        // Looking again does not look like more.
        locked.keyringChanged(at: Example.moment(3))
        #expect(step(locked, at: 3) == .load)
        locked.exchangeBegan(.load, at: Example.moment(3).boot)
        #expect(locked.state(at: Example.moment(3)) == .keyringLocked)
        #expect(locked.obstacle?.kind == .keyringLocked)
        // What waits for something else is left to it.
        for kind in Failure.Kind.allCases {
            var paused = Self.paused(kind)
            let phase = paused.phase
            paused.keyringDoubted()
            #expect(paused.phase == phase)
        }
    }

    // MARK: Ends and beginnings

    @Test("A verdict takes the token away; a sign-out makes the profile unknown")
    func ends() {
        var machine = Self.resting()
        machine.exchangeBegan(.rotate, at: Example.moment(1).boot)
        machine.exchangeEnded(
            .signInRequired(.revokedOrExpired, "revoked"), at: Example.moment(1), draw: 0)
        #expect(machine.access == nil && machine.wakeUp == nil && !machine.isUnknown)
        #expect(machine.lastFailure?.failure.detail == "revoked")
        var signedOut = Self.resting()
        signedOut.exchangeBegan(.signOut, at: Example.moment(1).boot)
        #expect(signedOut.state(at: Example.moment(1)) == .active)
        signedOut.exchangeEnded(.signedOut, at: Example.moment(1), draw: 0)
        #expect(signedOut.isUnknown && signedOut.access == nil)
        signedOut.exchangeBegan(.signIn, at: Example.moment(2).boot)
        #expect(signedOut.isUnknown)
        signedOut.exchangeEnded(
            .rejected(Rejection(.credentials, "no")), at: Example.moment(2), draw: 0)
        #expect(signedOut.isUnknown)
        signedOut.exchangeBegan(.signIn, at: Example.moment(3).boot)
        signedOut.exchangeEnded(
            .session(Example.report(0, access: Example.life(sent: 3))), at: Example.moment(3),
            draw: 0)
        #expect(!signedOut.isUnknown && Self.gives(signedOut, at: 3) == "token")
        var unknown = Self.machine()
        unknown.becomeUnknown()
        #expect(unknown.isUnknown && unknown.wakeUp == nil)
    }

    @Test("A sign-in or sign-out that fails leaves everything as it was")
    func failedJobs() {
        for job in [JobKind.signIn, .signOut, .identity, .sessions, .revokeSession] {
            var machine = Self.resting()
            let phase = machine.phase
            machine.exchangeBegan(job, at: Example.moment(1).boot)
            machine.exchangeEnded(
                .failed(Failure(.noAnswer, "cause")), at: Example.moment(1), draw: 0)
            #expect(machine.phase == phase)
        }
    }

    // MARK: On demand

    @Test("On demand it rotates when asked, and daily, restarts and reboots counted in")
    func onDemand() {
        var machine = Self.resting(mode: .onDemand)
        #expect(machine.wakeUp == Example.moment(86_400).boot)
        #expect(machine.state(at: Example.moment(5000)) == .active)
        #expect(Self.gives(machine, at: 5000) == "wait")
        machine.validityWanted(at: Example.moment(5000))
        #expect(step(machine, at: 5000) == .rotate(mayPresent: true))
        // Signed in an hour before, never rotated; the token is of another boot.
        let neverRotated = Self.resting(
            mode: .onDemand,
            report: Example.report(0, access: Example.life(boot: Example.otherBoot)))
        #expect(neverRotated.wakeUp == Example.moment(86_400 - 3600).boot)
        let rotated = Self.resting(
            mode: .onDemand,
            report: Example.report(
                3, lastRotation: Example.stamp(-7200, boot: Example.otherBoot),
                access: Example.life(boot: Example.otherBoot)))
        #expect(rotated.wakeUp == Example.moment(86_400 - 7200).boot)
    }

    // MARK: Walks

    @Test(
        "Whatever comes in whatever order: nothing expired, no spinning, nobody waits for ever",
        arguments: [UInt64(1), 2, 3, 4, 5, 6, 7, 8])
    func walk(_ seed: UInt64) {
        var walk = MachineWalk(seed: seed)
        for _ in 0..<4000 {
            walk.go()
            guard walk.faults.isEmpty else { break }
        }
        #expect(walk.faults == [], "seed \(seed)")
        #expect(walk.tokensGiven > 100 && walk.offersMade > 100 && walk.exchanges > 300)
    }

    @Test("A changed mode counts for the token in hand")
    func modeChanged() {
        var machine = Self.resting()
        machine.modeChanged(to: .onDemand, at: Example.moment(10), draw: 0.5)
        #expect(machine.wakeUp == Example.moment().boot + RotationTiming.onDemandKeepAlive)
        machine.modeChanged(to: .ahead, at: Example.moment(20), draw: 0)
        #expect(machine.wakeUp == Example.moment(675).boot)
        machine.modeChanged(to: .ahead, at: Example.moment(20), draw: 1)
        #expect(machine.wakeUp == Example.moment(675).boot)

        var dying = Self.resting()
        dying.exchangeBegan(.rotate, at: Example.moment(720).boot)
        dying.exchangeProgressed(.presenting, at: Example.moment(720))
        dying.exchangeDied("killed", at: Example.moment(721), draw: 0)
        let soon = dying.wakeUp
        dying.modeChanged(to: .onDemand, at: Example.moment(721), draw: 0)
        #expect(dying.wakeUp == soon)
    }

    @Test("A keyring that comes back is looked at, and is no reason to rotate ahead of time")
    func keyringBack() {
        let locked = Failure(.keyringLocked, "locked")
        for (seconds, next) in [
            (10.0, RotationMachine.Step.load), (900, .rotate(mayPresent: true)),
        ] {
            var machine = Self.resting()
            machine.keyringLost(locked, at: Example.moment(seconds - 1))
            #expect(machine.lastFailure?.failure == locked)
            machine.keyringChanged(at: Example.moment(seconds))
            #expect(step(machine, at: seconds) == next)
        }
    }

    @Test("A slot that an earlier daemon left full is settled first, and without presenting")
    func inheritedSuccessor() {
        var machine = RotationMachine(boot: Example.boot, holdsSuccessor: true)
        #expect(step(machine, at: 0) == .rotate(mayPresent: false) && machine.wakeUp != nil)
        machine.exchangeBegan(.rotate, at: Example.moment().boot)
        machine.exchangeEnded(
            .failed(Failure(.storageFailed, "disk full")), at: Example.moment(), draw: 0)
        #expect(step(machine, at: 60) == .rotate(mayPresent: false))
        machine.exchangeBegan(.rotate, at: Example.moment(60).boot)
        machine.exchangeEnded(
            .session(Example.report(4, storeFailure: Failure(.keyringLocked, "locked"))),
            at: Example.moment(60), draw: 0)
        #expect(Self.gives(machine, at: 61) == "token")
        #expect(machine.state(at: Example.moment(61)) == .degraded)
        machine.exchangeBegan(.rotate, at: Example.moment(62).boot)
        machine.exchangeEnded(.session(Example.report(4)), at: Example.moment(62), draw: 0.5)
        #expect(machine.state(at: Example.moment(63)) == .active && !machine.isUnstored)
        #expect(step(machine, at: 720) == .rotate(mayPresent: true))
    }
}
