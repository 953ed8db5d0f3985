import AgentCore
import Testing

@Suite("Nothing is presented that may be somebody else's, older, or too early")
struct PresentationGuardTests {
    private typealias Decision = PresentationGuard.Decision

    private static let known = KnownSignIns(current: Example.signIn, marks: [Example.signIn: 2])

    private static func evidence(
        slot: SlotReading = .empty, item: ItemReading = .session(Example.header(3)),
        signIns: KnownSignIns? = known, runtimeMarks: [SignInID: Int64] = [:],
        anchor: Anchor? = Example.anchor, at now: Moment = Example.moment(),
        boot: BootID = Example.boot, known: Generation? = nil, mayPresent: Bool = true
    ) -> PresentationGuard.Evidence {
        PresentationGuard.Evidence(
            slot: slot, item: item, signIns: signIns, runtimeMarks: runtimeMarks, anchor: anchor,
            now: now, boot: boot, known: known, mayPresent: mayPresent)
    }

    private static func dead(_ reason: SignInReason, current: SignInID? = Example.signIn)
        -> KnownSignIns
    {
        KnownSignIns(
            current: current,
            dead: [
                KnownSignIns.Death(
                    signIn: Example.signIn, generation: 3, reason: reason,
                    at: Example.moment().wall)
            ])
    }

    @Test("A known, living, newest token of this state directory is presented")
    func presented() {
        #expect(
            PresentationGuard.decide(Self.evidence()) == .present(ambiguous: false))
    }

    @Test("A generation equal to the mark may have been presented, whichever copy has the mark")
    func equalToTheMark() {
        let durable = KnownSignIns(current: Example.signIn, marks: [Example.signIn: 3])
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: durable))
                == .present(ambiguous: true))
        #expect(
            PresentationGuard.decide(Self.evidence(runtimeMarks: [Example.signIn: 3]))
                == .present(ambiguous: true))
    }

    @Test("A generation below the mark comes from a backup; the higher copy counts")
    func belowTheMark() {
        let durable = KnownSignIns(current: Example.signIn, marks: [Example.signIn: 4])
        for evidence in [
            Self.evidence(signIns: durable),
            Self.evidence(signIns: durable, runtimeMarks: [Example.signIn: 1]),
            Self.evidence(runtimeMarks: [Example.signIn: 4]),
            Self.evidence(
                signIns: KnownSignIns(current: Example.signIn),
                runtimeMarks: [Example.signIn: 4]),
        ] {
            #expect(PresentationGuard.decide(evidence) == .signInRequired(.restoredCopy))
        }
    }

    @Test("Another sign-in's mark says nothing of this one")
    func otherMark() {
        #expect(
            PresentationGuard.decide(Self.evidence(runtimeMarks: [Example.otherSignIn: 9]))
                == .present(ambiguous: false))
    }

    @Test("A dead sign-in stays dead, for the reason it died of", arguments: SignInReason.allCases)
    func dead(_ reason: SignInReason) {
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: Self.dead(reason)))
                == .signInRequired(reason))
        #expect(
            PresentationGuard.decide(Self.evidence(item: .none, signIns: Self.dead(reason)))
                == .signInRequired(reason))
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: Self.dead(reason), mayPresent: false))
                == .signInRequired(reason))
    }

    @Test("A sign-in that the state directory does not know is a copy, also where it is missing")
    func unknown() {
        let other = KnownSignIns(current: Example.otherSignIn)
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: other))
                == .signInRequired(.restoredCopy))
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: nil)) == .signInRequired(.restoredCopy))
    }

    @Test("A pending sign-in is accepted beside the current one")
    func pending() {
        let both = KnownSignIns(
            current: Example.otherSignIn, pending: [SignInID(high: 1, low: 2), Example.signIn])
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: both)) == .present(ambiguous: false))
        #expect(
            PresentationGuard.decide(
                Self.evidence(
                    item: .session(Example.header(3, of: Example.otherSignIn)), signIns: both))
                == .present(ambiguous: false))
    }

    @Test("A pending sign-in that is dead is not accepted")
    func pendingDead() {
        let signIns = KnownSignIns(
            current: Example.otherSignIn, pending: [Example.signIn],
            dead: Self.dead(.signedOut).dead)
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: signIns))
                == .signInRequired(.keyringReset))
    }

    @Test(
        "How an earlier sign-in ended does not end the present one, whose item is gone",
        arguments: [SignInReason.signedOut, .revokedOrExpired])
    func earlierEnd(_ reason: SignInReason) {
        #expect(
            PresentationGuard.decide(
                Self.evidence(signIns: Self.dead(reason, current: Example.otherSignIn)))
                == .signInRequired(.keyringReset))
        #expect(
            PresentationGuard.decide(Self.evidence(signIns: Self.dead(reason, current: nil)))
                == .signInRequired(reason))
    }

    @Test("Another anchor, another inode, another birth, or none: the directory was restored")
    func anchor() {
        for anchor in [
            nil, Anchor(inode: 43, birth: Example.anchor.birth),
            Anchor(inode: 42, birth: Example.anchor.birth + 1),
        ] {
            #expect(
                PresentationGuard.decide(Self.evidence(anchor: anchor))
                    == .signInRequired(.restoredCopy))
            #expect(
                PresentationGuard.decide(Self.evidence(anchor: anchor, mayPresent: false))
                    == .signInRequired(.restoredCopy))
        }
    }

    @Test("An open keyring without the item of a living sign-in was reset")
    func reset() {
        #expect(
            PresentationGuard.decide(Self.evidence(item: .none)) == .signInRequired(.keyringReset))
    }

    @Test("Nothing anywhere is no loss")
    func nothing() {
        for signIns in [nil, KnownSignIns(), KnownSignIns(pending: [Example.signIn])] {
            #expect(
                PresentationGuard.decide(Self.evidence(item: .none, signIns: signIns))
                    == .signInRequired(.signedOut))
        }
    }

    @Test("Another machine's item alone is not ours, whatever the state directory knows")
    func otherMachine() {
        for signIns in [nil, KnownSignIns(), Self.known] {
            #expect(
                PresentationGuard.decide(Self.evidence(item: .otherMachine, signIns: signIns))
                    == .signInRequired(.otherMachine))
        }
        #expect(
            PresentationGuard.decide(
                Self.evidence(item: .otherMachine, signIns: Self.dead(.revokedOrExpired)))
                == .signInRequired(.revokedOrExpired))
    }

    // MARK: The slot

    @Test("The slot is settled before anything else is looked at")
    func slot() {
        let rows: [(SlotReading, ItemReading, KnownSignIns?, Decision)] = [
            // A newer successor of the item's sign-in is stored, by whatever else is wrong.
            (
                .session(Example.header(4)), .session(Example.header(3)), Self.known,
                .storeSuccessor
            ),
            (.session(Example.header(4)), .session(Example.header(3)), nil, .storeSuccessor),
            // The same generation: only reading back and the fsync are made up for.
            (
                .session(Example.header(3)), .session(Example.header(3)), Self.known,
                .confirmSuccessor
            ),
            // An older one, and one of another sign-in, are of no use.
            (
                .session(Example.header(2)), .session(Example.header(3)), Self.known,
                .dropSuccessor
            ),
            (
                .session(Example.header(9, of: Example.otherSignIn)), .session(Example.header(3)),
                Self.known, .dropSuccessor
            ),
            // No item: only a sign-in that is known and alive.
            (.session(Example.header(4)), .none, Self.known, .storeSuccessor),
            (
                .session(Example.header(4)), .none, KnownSignIns(pending: [Example.signIn]),
                .storeSuccessor
            ),
            (.session(Example.header(4)), .none, Self.dead(.signedOut), .dropSuccessor),
            (.session(Example.header(4)), .none, Self.dead(.rotationLost), .dropSuccessor),
            (
                .session(Example.header(4, of: Example.otherSignIn)), .none, Self.known,
                .dropSuccessor
            ),
            (.session(Example.header(4)), .none, nil, .dropSuccessor),
            // Another machine's item is none of this machine.
            (.session(Example.header(4)), .otherMachine, Self.known, .storeSuccessor),
            (.session(Example.header(4)), .otherMachine, nil, .dropSuccessor),
            // What a kill cut short cannot be mended.
            (.torn, .session(Example.header(3)), Self.known, .dropSuccessor),
            (.torn, .none, nil, .dropSuccessor),
            // What cannot be read may be the successor of whatever there is.
            (
                .newerFormat(2), .session(Example.header(3)), Self.known,
                .leaveSuccessor(format: 2)
            ),
            (.newerFormat(2), .none, nil, .leaveSuccessor(format: 2)),
            (.newerFormat(2), .none, Self.dead(.signedOut), .leaveSuccessor(format: 2)),
        ]
        for (index, row) in rows.enumerated() {
            for mayPresent in [true, false] {
                let decision = PresentationGuard.decide(
                    Self.evidence(
                        slot: row.0, item: row.1, signIns: row.2, mayPresent: mayPresent))
                #expect(decision == row.3, "row \(index)")
            }
        }
    }

    // MARK: Adoption

    @Test("A newer generation is adopted if its access token can serve")
    func adopted() {
        let older = Generation(signIn: Example.signIn, number: 2)
        #expect(
            PresentationGuard.decide(Self.evidence(known: older)) == .adopt(ambiguous: false))
        #expect(
            PresentationGuard.decide(
                Self.evidence(runtimeMarks: [Example.signIn: 3], known: older))
                == .adopt(ambiguous: true))
        let otherSignIn = Generation(signIn: Example.otherSignIn, number: 9)
        #expect(
            PresentationGuard.decide(Self.evidence(known: otherSignIn))
                == .adopt(ambiguous: false))
    }

    @Test("It is presented if its access token is over, nearly over, of another boot, or missing")
    func notAdopted() {
        let older = Generation(signIn: Example.signIn, number: 2)
        for (access, now) in [
            (Example.life(), 900.0), (Example.life(), 871), (nil, 0),
            (Example.life(boot: Example.otherBoot), 0),
        ] {
            #expect(
                PresentationGuard.decide(
                    Self.evidence(
                        item: .session(Example.header(3, access: access)),
                        at: Example.moment(now), known: older)) == .present(ambiguous: false))
        }
    }

    @Test("The generation that canopyd has, or a newer one, is no reason to adopt")
    func sameGeneration() {
        for number: Int64 in [3, 4] {
            #expect(
                PresentationGuard.decide(
                    Self.evidence(known: Generation(signIn: Example.signIn, number: number)))
                    == .present(ambiguous: false))
        }
    }

    @Test("Where nothing may be presented, the item is reported as it is")
    func mayNotPresent() {
        let waiting = Example.header(
            3, notBefore: NotBefore(since: Example.stamp(), span: .seconds(60)))
        #expect(
            PresentationGuard.decide(Self.evidence(mayPresent: false)) == .adopt(ambiguous: false))
        #expect(
            PresentationGuard.decide(Self.evidence(item: .session(waiting), mayPresent: false))
                == .adopt(ambiguous: false))
        #expect(
            PresentationGuard.decide(
                Self.evidence(runtimeMarks: [Example.signIn: 3], mayPresent: false))
                == .adopt(ambiguous: true))
    }

    // MARK: Too early

    private static func waiting(_ span: Double, since: Stamp = Example.stamp()) -> ItemReading {
        .session(
            Example.header(3, notBefore: NotBefore(since: since, span: Example.span(span))))
    }

    @Test("A hold that a power cut brought back does not hold the repetition up")
    func holdBroughtBack() {
        let began = Stamp(Example.moment(-600), boot: Example.otherBoot)
        let item = Example.header(
            3, lastRotation: began, notBefore: NotBefore(since: began, span: .seconds(120)))
        let fresh = Moment(boot: BootTime(nanoseconds: 5_000_000_000), wall: Example.moment().wall)
        #expect(
            PresentationGuard.decide(
                Self.evidence(
                    item: .session(item), runtimeMarks: [Example.signIn: 3], at: fresh))
                == .present(ambiguous: true))
        #expect(
            PresentationGuard.decide(
                Self.evidence(
                    item: .session(item), at: fresh))
                == .wait(.seconds(115)))
        // Nor does one that was told anew since; what a server asked for, after an attempt, does.
        var other = item
        other.notBefore = NotBefore(
            since: Stamp(Example.moment(-592), boot: Example.otherBoot), span: .seconds(112))
        for attempt in [nil, Example.moment(-592).wall] {
            other.attemptedAt = attempt
            #expect(
                PresentationGuard.decide(
                    Self.evidence(
                        item: .session(other), runtimeMarks: [Example.signIn: 3], at: fresh))
                    == (attempt == nil ? .present(ambiguous: true) : .wait(.seconds(107))))
        }
    }

    @Test("A hold is waited for, ambiguous or not, and ends to the nanosecond")
    func hold() {
        let item = Self.waiting(120)
        #expect(
            PresentationGuard.decide(Self.evidence(item: item, at: Example.moment(20)))
                == .wait(.seconds(100)))
        #expect(
            PresentationGuard.decide(
                Self.evidence(
                    item: item, runtimeMarks: [Example.signIn: 3], at: Example.moment(119)))
                == .wait(.seconds(1)))
        #expect(
            PresentationGuard.decide(Self.evidence(item: item, at: Example.moment(120)))
                == .present(ambiguous: false))
    }

    @Test("Within one boot, no step of the wall clock shortens or lengthens a wait")
    func steppedWithinABoot() {
        for step in [-1e6, 1e6] {
            #expect(
                PresentationGuard.decide(
                    Self.evidence(
                        item: Self.waiting(120), at: Example.moment(20, wallStep: step)))
                    == .wait(.seconds(100)))
        }
    }

    @Test("After a reboot the wall clock tells, and the boot clock where it went back")
    func acrossBoots() {
        let item = Self.waiting(900)
        func after(_ seconds: Double, uptime: Double, wallStep: Double = 0) -> Decision {
            let wall = Example.moment(seconds, wallStep: wallStep).wall
            let now = Moment(boot: BootTime(nanoseconds: Int64(uptime * 1e9)), wall: wall)
            return PresentationGuard.decide(
                Self.evidence(item: item, at: now, boot: Example.otherBoot))
        }
        #expect(after(60, uptime: 10) == .wait(.seconds(840)))
        #expect(after(900, uptime: 10) == .present(ambiguous: false))
        // Set back by a year: it cannot take longer than from the boot on.
        #expect(after(60, uptime: 10, wallStep: -3e7) == .wait(.seconds(890)))
        #expect(after(900, uptime: 900, wallStep: -3e7) == .present(ambiguous: false))
    }

    @Test("Between two rotations lie five seconds, or a tenth of a short lifetime")
    func floor() {
        for (lifetime, floor) in [(900.0, 5.0), (50, 5), (20, 2), (10, 1)] {
            let item = ItemReading.session(
                Example.header(
                    3, lastRotation: Example.stamp(), access: Example.life(lifetime)))
            #expect(
                PresentationGuard.decide(
                    Self.evidence(item: item, at: Example.moment(floor * 0.25)))
                    == .wait(Example.span(floor * 0.75)))
            #expect(
                PresentationGuard.decide(Self.evidence(item: item, at: Example.moment(floor)))
                    == .present(ambiguous: false))
        }
    }

    @Test("Without a lifetime the floor is five seconds")
    func floorWithoutLifetime() {
        let item = ItemReading.session(
            Example.header(3, lastRotation: Example.stamp(), access: nil))
        #expect(
            PresentationGuard.decide(Self.evidence(item: item, at: Example.moment(1)))
                == .wait(.seconds(4)))
    }

    @Test("The same bytes again are no new rotation, and a sign-in is none")
    func noFloor() {
        let rotated = ItemReading.session(Example.header(3, lastRotation: Example.stamp()))
        #expect(
            PresentationGuard.decide(
                Self.evidence(item: rotated, runtimeMarks: [Example.signIn: 3]))
                == .present(ambiguous: true))
        let signedIn = ItemReading.session(Example.header(0))
        #expect(
            PresentationGuard.decide(
                Self.evidence(item: signedIn, signIns: KnownSignIns(current: Example.signIn)))
                == .present(ambiguous: false))
    }

    @Test("The longer of hold and floor is waited for")
    func longerWait() {
        let header = Example.header(
            3, lastRotation: Example.stamp(),
            notBefore: NotBefore(since: Example.stamp(), span: .seconds(2)))
        #expect(
            PresentationGuard.decide(
                Self.evidence(item: .session(header), at: Example.moment(1)))
                == .wait(.seconds(4)))
    }
}
