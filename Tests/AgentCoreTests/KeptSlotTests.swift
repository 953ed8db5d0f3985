import AgentCore
import Testing

/// The slot of a profile whose keyring writes late, as canopyd's machine knows it.
@Suite("A slot that is full on purpose")
struct KeptSlotTests {
    /// Rotated to generation 4 at 720 s, with the slot kept for 15 s, and what it keeps stored once, or
    /// twice.
    private static func kept(isRewritten: Bool = true) -> RotationMachine {
        var machine = RotationMachine(boot: Example.boot)
        machine.exchangeBegan(.load, at: Example.moment().boot)
        machine.exchangeEnded(.session(Example.report(3)), at: Example.moment(), draw: 0.5)
        machine.exchangeBegan(.rotate, at: Example.moment(720).boot)
        machine.exchangeEnded(
            .session(
                Example.report(
                    4, access: Example.life(sent: 720), slotKeptFor: .seconds(15),
                    isSlotRewritten: isRewritten)),
            at: Example.moment(720), draw: 0.5)
        return machine
    }

    private func step(_ machine: RotationMachine, at seconds: Double) -> RotationMachine.Step {
        machine.step(at: Example.moment(seconds).boot)
    }

    @Test("It is settled when its time has come, and the profile is active all the while")
    func settled() {
        var machine = Self.kept()
        #expect(machine.state(at: Example.moment(721)) == .active && !machine.isUnstored)
        #expect(machine.wakeUp == Example.moment(735).boot)
        #expect(step(machine, at: 734) == .nothing)
        #expect(step(machine, at: 735) == .rotate(mayPresent: false))
        #expect(machine.slotKeptFor(at: Example.moment(730).boot) == .seconds(5))
        #expect(machine.slotKeptFor(at: Example.moment(800).boot) == .zero)
        #expect(machine.isSlotRewritten && !Self.kept(isRewritten: false).isSlotRewritten)
        machine.exchangeBegan(.rotate, at: Example.moment(735).boot)
        #expect(machine.isSettling && machine.state(at: Example.moment(735)) == .active)
        machine.exchangeEnded(
            .session(Example.report(4, access: Example.life(sent: 720))),
            at: Example.moment(735), draw: 0.5)
        #expect(machine.slot == .empty && step(machine, at: 800) == .nothing)
        #expect(machine.slotKeptFor(at: Example.moment(800).boot) == nil)
    }

    @Test("A keyring that came back is given what the slot holds at once, and never only read")
    func keyringBack() {
        var machine = Self.kept()
        machine.keyringLost(Failure(.keyringUnavailable, "gone"), at: Example.moment(722))
        machine.keyringChanged(at: Example.moment(724))
        #expect(step(machine, at: 724) == .rotate(mayPresent: false))
        var doubted = Self.kept()
        doubted.keyringDoubted()
        #expect(step(doubted, at: 722) == .rotate(mayPresent: false))
    }

    @Test("Nobody makes it rotate before its time")
    func patience() {
        var machine = Self.kept()
        machine.validityWanted(at: Example.moment(726))
        #expect(machine.rotationForced(at: Example.moment(726)) == false)
        #expect(step(machine, at: 734) == .nothing)
        // It waits for the second write, too.
        for (isRewritten, isOver) in [(true, true), (false, false)] {
            var machine = Self.kept(isRewritten: isRewritten)
            #expect(machine.rotationForced(at: Example.moment(740)) == isOver)
        }
    }

    @Test("After a sleep its time begins anew: the keyring's clock has stood still")
    func resumed() {
        for isRewritten in [false, true] {
            var machine = Self.kept(isRewritten: isRewritten)
            machine.resumed(at: Example.moment(3000))
            let left = machine.slotKeptFor(at: Example.moment(3000).boot)
            #expect(left == RotationTiming.lateWrite && machine.isSlotRewritten == isRewritten)
            // A network that comes and goes does not put it off.
            machine.surroundingsChanged(at: Example.moment(3005))
            #expect(machine.slotKeptFor(at: Example.moment(3005).boot) == .milliseconds(2500))
        }
    }

    @Test("An exchange that presents has emptied it; one that dies may have filled it")
    func exchanges() {
        var machine = Self.kept()
        machine.exchangeBegan(.rotate, at: Example.moment(1400).boot)
        machine.exchangeProgressed(.presenting, at: Example.moment(1400))
        #expect(machine.slot == .empty && machine.state(at: Example.moment(1400)) == .refreshing)
        var died = machine
        died.exchangeDied("killed", holdsSuccessor: true, at: Example.moment(1401), draw: 0)
        #expect(step(died, at: 1402) == .rotate(mayPresent: false))
        // A sign-in too: read alone, a keyring that has lost it would seem to have been reset.
        var signIn = Self.kept()
        signIn.exchangeBegan(.signIn, at: Example.moment(800).boot)
        signIn.exchangeDied("killed", holdsSuccessor: true, at: Example.moment(801), draw: 0)
        #expect(step(signIn, at: 801) == .rotate(mayPresent: false))
    }

    @Test("A sign-in or sign-out that fails leaves it kept, and so does a question that dies")
    func failures() {
        let failures: [(job: JobKind, outcome: ExchangeOutcome)] = [
            (.signIn, .rejected(Rejection(.credentials, "no"))),
            (.secondFactor, .failed(Failure(.noAnswer, "reset"))),
            (.signOut, .failed(Failure(.serverError, "503"))),
        ]
        for (job, outcome) in failures {
            var machine = Self.kept()
            machine.exchangeBegan(job, at: Example.moment(722).boot)
            machine.exchangeProgressed(.presenting, at: Example.moment(723))
            machine.exchangeEnded(outcome, at: Example.moment(724), draw: 0)
            #expect(machine.slot == .kept(until: Example.moment(735).boot, isRewritten: true))
            #expect(step(machine, at: 735) == .rotate(mayPresent: false))
            // A keyring that was killed, and only read, would seem to have been reset.
            machine.keyringDoubted()
            #expect(step(machine, at: 725) == .rotate(mayPresent: false))
        }
        for job in JobKind.allCases where job.isQuestion {
            var machine = Self.kept()
            machine.exchangeBegan(job, at: Example.moment(722).boot)
            machine.exchangeDied(
                "killed", holdsSuccessor: true, at: Example.moment(724), draw: 0)
            #expect(machine.slot == .kept(until: Example.moment(735).boot, isRewritten: true))
        }
    }

    @Test("A sign-out that has rotated and failed has what it left in the slot stored, at once")
    func rotatedSignOut() {
        for isKept in [true, false] {
            var machine = Self.kept()
            if !isKept {
                machine.exchangeBegan(.rotate, at: Example.moment(740).boot)
                machine.exchangeEnded(
                    .session(Example.report(3, access: Example.life(sent: 720))),
                    at: Example.moment(741), draw: 0)
                #expect(machine.slot == .empty)
            }
            machine.exchangeBegan(.signOut, at: Example.moment(750).boot)
            machine.exchangeProgressed(.presenting, at: Example.moment(751))
            machine.exchangeEnded(
                .failed(Failure(.keyringLocked, "locked")), holdsSuccessor: true,
                at: Example.moment(752), draw: 0)
            #expect(machine.slot == .unstored)
            #expect(step(machine, at: 752) == .rotate(mayPresent: false))
        }
    }

    @Test("What mends an unstored successor is what mends its keyring, and never to forget it")
    func remedies() {
        for remedy in Failure.Remedy.allCases {
            let failure = Failure(.keyringUnavailable, "damaged", remedy: remedy)
            var machine = Self.kept()
            machine.exchangeBegan(.rotate, at: Example.moment(800).boot)
            machine.exchangeEnded(
                .session(Example.report(4, access: Example.life(sent: 720), storeFailure: failure)),
                at: Example.moment(801), draw: 0)
            #expect(
                machine.lastFailure?.failure.remedy
                    == (remedy == .signInAnew ? .examination : remedy))
        }
    }

    @Test("With a successor that is not stored, a slow keyring leaves the profile degraded")
    func slowness() {
        var machine = Self.kept()
        let locked = Failure(.keyringLocked, "locked")
        machine.exchangeBegan(.rotate, at: Example.moment(800).boot)
        machine.exchangeEnded(
            .session(Example.report(4, access: Example.life(sent: 720), storeFailure: locked)),
            at: Example.moment(800), draw: 0)
        machine.exchangeBegan(.rotate, at: Example.moment(802).boot)
        machine.exchangeProgressed(
            .retrying(Failure(.keyringUnavailable, "it takes its time")), at: Example.moment(803))
        #expect(machine.state(at: Example.moment(803)) == .degraded)
        #expect(machine.lastFailure?.failure.kind == .successorUnstored)
        #expect(machine.obstacle?.cause == .keyringUnavailable)
    }
}
