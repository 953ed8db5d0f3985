import AgentCore
import Testing

@Suite("A rotation, step by step")
struct RotationTests {
    private func rotate(
        _ world: ScriptedWorld, known: Generation? = nil, mayPresent: Bool = true
    ) throws -> ExchangeOutcome {
        try Rotation(in: world, known: known, mayPresent: mayPresent).run()
    }

    private func reported(_ outcome: ExchangeOutcome) -> SessionReport? {
        if case .session(let report) = outcome { report } else { nil }
    }

    private func failed(_ outcome: ExchangeOutcome) -> Failure? {
        if case .failed(let failure) = outcome { failure } else { nil }
    }

    private static let broken = Failure(.storageFailed, "disk full")
    private static let locked = Failure(.keyringLocked, "locked")

    private static let read = ["lock", "read state", "read item", "read slot"]
    private static let marked = [
        "write sign-ins", "write item 3", "read item", "sync", "presenting",
    ]
    private static let kept = ["fill slot 4", "write item 4", "read item", "sync", "empty slot"]

    @Test("Lock, read, guard, mark, prove the store, announce, present, slot, item, fsync, done")
    func order() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        let outcome = try rotate(world)
        #expect(world.calls == Self.read + Self.marked + ["present a-3"] + Self.kept)
        #expect(world.violations.isEmpty)
        let report = try #require(reported(outcome))
        #expect(report.header.generation == 4 && report.storeFailure == nil)
        #expect(!report.isAmbiguous && report.header.notBefore == nil)
        #expect(report.header.lastRotation == Example.stamp())
        #expect(text(report.accessToken?.value) == "access-4")
        #expect(world.heldSession?.header == report.header && world.isSlotEmpty)
        #expect(text(world.heldSession?.refreshToken) == "a-4")
        #expect(world.signIns?.mark(of: Example.signIn) == 3)
    }

    @Test("A lock that somebody keeps is backed off from, and nothing is read")
    func lockBusy() throws {
        let world = ScriptedWorld(Example.session(3))
        world.isLockFree = false
        #expect(failed(try rotate(world))?.kind == .lockBusy)
        #expect(world.calls == ["lock"])
    }

    @Test(
        "What cannot be read, marked, written, read back or synced is not spent",
        arguments: [
            ("read state", 1), ("read item", 1), ("write sign-ins", 1), ("write item", 1),
            ("sync", 1),
        ])
    func nothingPresented(_ call: String, _ times: Int) throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.faults = [(call, times, Self.broken)]
        #expect(failed(try rotate(world)) == Self.broken)
        #expect(world.count("present") == 0)
        // The mark that was raised for nothing is where it was.
        #expect(world.signIns?.mark(of: Example.signIn) == 2)
        world.restart()
        #expect(reported(try rotate(world))?.header.notBefore == nil)
        #expect(world.violations.isEmpty)
    }

    @Test("A keyring that returns something else than was stored is not trusted with a token")
    func readBack() throws {
        let world = ScriptedWorld(Example.session(3))
        world.interference = ("sync", { _ in Issue.record("synced what was not read back") })
        world.interference = (
            "write item", { $0.interference = ("read item", { $0.item = .none }) }
        )
        #expect(failed(try rotate(world))?.kind == .keyringUnavailable)
        #expect(world.count("present") == 0)
    }

    @Test("A mark is not taken back below what another boot's copy remembers")
    func withdrawnToTheHigher() throws {
        let world = ScriptedWorld(Example.session(3), marked: 1)
        world.runtimeMarks = [Example.signIn: 2]
        world.answers = [.notSent("no route")]
        #expect(failed(try rotate(world))?.kind == .notPresented)
        #expect(world.signIns?.mark(of: Example.signIn) == 2)
        #expect(world.runtimeMarks[Example.signIn] == 2)
    }

    @Test("What never left costs neither a mark nor a hold")
    func notSent() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [.notSent("no route")]
        let failure = try #require(failed(try rotate(world)))
        #expect(failure.kind == .notPresented && failure.detail == "no route")
        #expect(world.count("present") == 2 && world.signIns?.mark(of: Example.signIn) == nil)
        world.restart()
        #expect(reported(try rotate(world))?.header.notBefore == nil)
    }

    @Test("What may have been presented before is presented again, and its mark stays")
    func notSentAgain() throws {
        let world = ScriptedWorld(Example.session(3), marked: 3)
        world.answers = Array(repeating: .notSent("no route"), count: 5)
        #expect(failed(try rotate(world))?.kind == .notPresented)
        #expect(world.count("present a-3") == 3)
        #expect(world.signIns?.mark(of: Example.signIn) == 3)
    }

    @Test("An ambiguous answer is asked for again after 0.5, 1, 2 and 4 s, then reported")
    func quickRepetitions() throws {
        for (answer, kind) in [
            (Transmission.lost("reset"), Failure.Kind.noAnswer),
            (Example.answer(500, ""), .serverError), (Example.answer(200, "{"), .serverError),
            (Example.answer(302, ""), .somebodyInBetween),
            (Example.answer(401, "<html>"), .somebodyInBetween),
        ] {
            let world = ScriptedWorld(Example.session(3))
            world.answers = Array(repeating: answer, count: 9)
            #expect(failed(try rotate(world))?.kind == kind)
            let retry = "retrying \(kind)"
            #expect(
                world.calls == Self.read + Self.marked + [
                    "present a-3", retry, "pause 0.5", "present a-3", retry, "pause 1.0",
                    "present a-3", retry, "pause 2.0", "present a-3", retry, "pause 4.0",
                    "present a-3",
                ])
            #expect(world.signIns?.mark(of: Example.signIn) == 3)
            #expect(world.heldSession?.header.generation == 3)
        }
    }

    @Test(
        "Bytes that an earlier exchange failed with are repeated for as long, with half the requests"
    )
    func laterRepetitions() throws {
        let world = ScriptedWorld(Example.session(3), marked: 3)
        world.answers = Array(repeating: Example.answer(502, ""), count: 9)
        #expect(failed(try rotate(world))?.kind == .serverError)
        #expect(
            world.calls.suffix(7) == [
                "present a-3", "retrying serverError", "pause 1.5", "present a-3",
                "retrying serverError", "pause 6.0", "present a-3",
            ])
        let total = { (waits: [TimeSpan]) in waits.reduce(.zero, +) }
        #expect(total(RotationTiming.laterRetries) == total(RotationTiming.quickRetries))
    }

    @Test(
        "After an ambiguous attempt the successor is held, in slot and item, and so in the report")
    func hold() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [.lost("reset")]
        let report = try #require(reported(try rotate(world)))
        #expect(report.header.notBefore?.span == .seconds(120))
        #expect(report.header.notBefore?.since == Example.stamp(0.5))
        #expect(world.heldSession?.header.notBefore == report.header.notBefore)
        // The next one waits, forced or not, in another process too.
        world.restart(after: 20)
        guard case .tooEarly(_, let wait) = try rotate(world, known: report.header.position) else {
            Issue.record("not too early")
            return
        }
        #expect(wait == .seconds(100) && world.count("present") == 0)
        world.restart(after: 100)
        #expect(self.reported(try rotate(world))?.header.generation == 5)
        #expect(world.violations.isEmpty)
    }

    @Test("A generation equal to the mark counts as ambiguous after a crash")
    func holdAfterACrash() throws {
        let world = ScriptedWorld(Example.session(3), marked: 3)
        #expect(reported(try rotate(world))?.header.notBefore?.span == .seconds(120))
    }

    @Test("A keyring that writes late is given 15 s before what it holds is relied on")
    func lateKeyring() throws {
        let world = ScriptedWorld(Example.session(3))
        world.keyringWritesAtOnce = false
        #expect(reported(try rotate(world))?.header.notBefore?.span == .seconds(15))
        let ambiguous = ScriptedWorld(Example.session(3), marked: 3)
        ambiguous.keyringWritesAtOnce = false
        #expect(reported(try rotate(ambiguous))?.header.notBefore?.span == .seconds(120))
    }

    @Test("503 with Retry-After is tried once more after a second, then obeyed")
    func unavailable() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = Array(
            repeating: Example.answer(503, "", retryAfter: "60"), count: 9)
        let failure = try #require(failed(try rotate(world)))
        #expect(failure.kind == .throttled && failure.wait == .seconds(60))
        #expect(
            world.calls == Self.read + Self.marked + [
                "present a-3", "retrying serverError", "pause 1.0", "present a-3",
                "write item 3", "read item", "sync",
            ])
        // Obeyed across restarts, and the successor is held: the first may have rotated.
        world.answers = []
        world.restart(after: 30)
        let again = try #require(failed(try rotate(world)))
        #expect(again.kind == .throttled && again.wait == .seconds(30))
        world.restart(after: 30)
        #expect(reported(try rotate(world))?.header.notBefore?.span == .seconds(120))
    }

    @Test("A 503's time is spread as widely as back-off is, for everybody is told the same")
    func unavailableIsSpread() throws {
        let world = ScriptedWorld(Example.session(3))
        world.drawn = 0.5
        world.answers = Array(
            repeating: Example.answer(503, "", retryAfter: "60"), count: 9)
        #expect(failed(try rotate(world))?.wait == .seconds(60 + 360))
    }

    @Test("Canopy's own 503 is tried once more after a second, a proxy's four times")
    func unavailableWithoutATime() throws {
        let own = ScriptedWorld(Example.session(3))
        own.answers = Array(repeating: Example.envelope(503), count: 9)
        let failure = try #require(failed(try rotate(own)))
        #expect(failure.kind == .serverError && failure.wait == nil)
        #expect(own.count("present a-3") == 2 && own.calls.contains("pause 1.0"))
        #expect(own.signIns?.mark(of: Example.signIn) == 3)
        let proxy = ScriptedWorld(Example.session(3))
        proxy.answers = Array(repeating: Example.answer(503, "<html>"), count: 9)
        #expect(failed(try rotate(proxy))?.kind == .serverError)
        #expect(proxy.count("present a-3") == 5)
    }

    @Test("503 and then a successor: it is held")
    func unavailableOnce() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.answer(503, "", retryAfter: "60")]
        #expect(reported(try rotate(world))?.header.notBefore?.span == .seconds(120))
        #expect(world.count("present") == 3)
    }

    @Test("429 is obeyed up to 15 minutes with jitter, in the item too; without a time, backed off")
    func throttled() throws {
        for (retryAfter, wait) in [
            ("60", Example.span(63)), ("999999", Example.span(945)), ("0", Example.span(1.05)),
        ] {
            let world = ScriptedWorld(Example.session(3))
            world.drawn = 0.5
            world.answers = [Example.answer(429, "", retryAfter: retryAfter)]
            #expect(failed(try rotate(world))?.wait == wait)
            #expect(world.heldSession?.header.notBefore?.span == wait)
        }
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.envelope(429)]
        let failure = try #require(failed(try rotate(world)))
        #expect(failure.kind == .throttled && failure.wait == nil)
        #expect(world.heldSession?.header.notBefore == nil)
    }

    @Test("A refusal, and an answer by cookie, keep the token and its mark")
    func refused() throws {
        for (answer, kind) in [
            (Example.envelope(403), Failure.Kind.refused), (Example.envelope(400), .refused),
            (Example.answer(200, #"{"access_token":"a","expires_in":9}"#), .notNative),
        ] {
            let world = ScriptedWorld(Example.session(3))
            world.answers = [answer]
            #expect(failed(try rotate(world))?.kind == kind)
            #expect(world.count("present a") == 1)
            #expect(text(world.heldSession?.refreshToken) == "a-3")
            #expect(world.signIns?.mark(of: Example.signIn) == 3)
        }
    }

    // MARK: Verdict

    private static let buried = [
        "read state", "read item", "write sign-ins", "empty slot", "delete item", "sync",
    ]

    @Test("A verdict is recorded before it is reported, then slot and item go")
    func verdict() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.envelope(401, "revoked")]
        guard case .signInRequired(let reason, let words, _) = try rotate(world) else {
            Issue.record("no verdict")
            return
        }
        #expect(reason == .revokedOrExpired && words == "revoked")
        #expect(world.calls == Self.read + Self.marked + ["present a-3"] + Self.buried)
        let death = try #require(world.signIns?.death(of: Example.signIn))
        #expect(death.generation == 3 && death.reason == .revokedOrExpired)
        #expect(world.heldSession == nil)
    }

    @Test("A verdict after an ambiguous attempt is a lost rotation")
    func rotationLost() throws {
        for world in [
            ScriptedWorld(Example.session(3), marked: 3), ScriptedWorld(Example.session(3)),
        ] {
            let wasMarked = world.signIns?.mark(of: Example.signIn) == 3
            world.answers = (wasMarked ? [] : [.lost("reset")]) + [Example.envelope(401)]
            guard case .signInRequired(let reason, _, _) = try rotate(world) else {
                Issue.record("no verdict")
                return
            }
            #expect(reason == .rotationLost)
        }
    }

    @Test("A verdict that cannot be recorded is not reported, and recording goes on")
    func verdictUnrecorded() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.envelope(401)]
        world.interference = (
            "present a",
            { $0.faults = [("write sign-ins", 2, Self.broken), ("read state", 2, Self.broken)] }
        )
        guard case .signInRequired = try rotate(world) else {
            Issue.record("no verdict")
            return
        }
        let retry = ["retrying storageFailed", "pause 1.0"]
        #expect(
            world.calls == Self.read + Self.marked + ["present a-3"]
                + ["read state"] + retry + ["read state"] + retry
                + Self.buried.prefix(3) + retry + Self.buried.prefix(3) + retry + Self.buried)
        #expect(world.signIns?.death(of: Example.signIn) != nil)
    }

    @Test("A03: a verdict about bytes that were replaced meanwhile signs nobody out")
    func verdictAboutOldBytes() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.envelope(401)]
        world.interference = ("present a", { $0.item = .session(Example.session(4)) })
        #expect(reported(try rotate(world))?.header.generation == 4)
        #expect(world.signIns?.death(of: Example.signIn) == nil)
        #expect(world.heldSession?.header.generation == 4)
    }

    @Test("A verdict is not believed before the keyring was read again", arguments: [true, false])
    func verdictUnread(_ holdsNewer: Bool) throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.envelope(401)]
        world.interference = (
            "present a",
            {
                $0.faults = [("read item", 3, Self.locked)]
                guard holdsNewer else { return }
                $0.interference = ("retrying", { $0.item = .session(Example.session(4)) })
            }
        )
        let outcome = try rotate(world)
        let retry = ["read state", "read item", "retrying keyringLocked", "pause 1.0"]
        let before = Self.read + Self.marked + ["present a-3"] + retry + retry + retry
        #expect(Array(world.calls.prefix(before.count)) == before)
        if holdsNewer {
            #expect(reported(outcome)?.header.generation == 4)
            #expect(world.signIns?.death(of: Example.signIn) == nil)
        } else {
            guard case .signInRequired(.revokedOrExpired, _, _) = outcome else {
                Issue.record("no verdict")
                return
            }
            #expect(world.calls == before + Self.buried)
        }
    }

    @Test("A keyring that cannot delete what is dead cannot revive it")
    func deadItemStays() throws {
        let world = ScriptedWorld(Example.session(3))
        world.answers = [Example.envelope(401)]
        world.faults = [("delete item", 1, Self.locked)]
        _ = try rotate(world)
        world.restart()
        guard case .signInRequired(let reason, _, _) = try rotate(world) else {
            Issue.record("revived")
            return
        }
        #expect(reason == .revokedOrExpired && world.count("present") == 0)
    }

    // MARK: Storing the successor

    @Test("A successor that cannot be stored for 5 s stays in the slot, and its token serves")
    func unstored() throws {
        for call in ["write item 4", "sync"] {
            let world = ScriptedWorld(Example.session(3))
            world.interference = ("present a", { $0.faults = [(call, .max, Self.locked)] })
            let report = try #require(reported(try rotate(world)))
            #expect(report.storeFailure == Self.locked && report.header.generation == 4)
            #expect(text(report.accessToken?.value) == "access-4")
            #expect(world.count("pause") == 20)
            #expect(!world.isSlotEmpty)
            #expect(world.count("present a") == 1)

            // Nothing is presented before it is stored.
            world.restart(after: 60)
            let again = try #require(
                self.reported(try rotate(world, known: report.header.position)))
            #expect(again.storeFailure == Self.locked && world.count("present") == 0)

            // Once the keyring takes it, the slot is emptied and nothing else happens.
            world.faults = []
            world.restart(after: 60)
            let stored = try #require(
                self.reported(
                    try rotate(world, known: report.header.position, mayPresent: false)))
            #expect(stored.storeFailure == nil && stored.header.generation == 4)
            #expect(world.isSlotEmpty && world.heldSession?.header.generation == 4)
            #expect(world.violations.isEmpty)
        }
    }

    @Test("Without a slot, the only process that has the successor goes on storing it")
    func noSlot() throws {
        let world = ScriptedWorld(Example.session(3))
        world.canFillSlot = false
        world.interference = (
            "present a", { $0.faults = [("write item 4", 100, Self.locked)] }
        )
        let report = try #require(reported(try rotate(world)))
        #expect(report.storeFailure == nil)
        #expect(world.count("pause") == 100 && world.heldSession?.header.generation == 4)
    }

    @Test("A slot's generation that the item has is read back and synced before it is dropped")
    func confirmed() throws {
        let world = ScriptedWorld(Example.session(3, lastRotation: Example.stamp(-60)))
        world.slot = world.heldSession.map { .session($0) } ?? .empty
        let known = Generation(signIn: Example.signIn, number: 2)
        #expect(reported(try rotate(world, known: known))?.header.generation == 3)
        #expect(
            world.calls == Self.read + ["read item", "sync", "empty slot"]
                + Self.read.dropFirst())
    }

    @Test("A slot that was cut short is emptied, and the item counts")
    func torn() throws {
        let world = ScriptedWorld(Example.session(3))
        world.slot = .torn
        #expect(reported(try rotate(world))?.header.generation == 4)
        #expect(world.calls.starts(with: Self.read + ["empty slot"] + Self.read.dropFirst()))
    }

    @Test(
        "What a later version has put into the slot stays there, is told, and nothing is presented")
    func newerSlot() throws {
        // Whatever else is wrong, and whatever a request would bring; and whether the item's own access token
        // is good to be handed out meanwhile.
        let changes: [(change: (ScriptedWorld) -> Void, serves: Bool)] = [
            ({ _ in }, true), ({ $0.keyringWritesAtOnce = false }, true),
            ({ $0.signIns?.raiseMark(of: Example.signIn, to: 3) }, true),
            ({ $0.item = .none }, false), ({ $0.signIns = nil }, false),
            ({ $0.signIns?.raiseMark(of: Example.signIn, to: 4) }, false),
            ({ $0.anchor = nil }, false), ({ $0.item = .otherMachine }, false),
        ]
        for (change, serves) in changes {
            for (mayPresent, version) in [(true, 9), (false, 9), (true, nil)] as [(Bool, Int64?)] {
                let world = ScriptedWorld(Example.session(3))
                world.slot = .newerFormat(version)
                change(world)
                let outcome = try rotate(world, mayPresent: mayPresent)
                let told = reported(outcome)?.storeFailure ?? failed(outcome)
                #expect(told == SlotFormat.newerFormat(version))
                #expect((reported(outcome)?.accessToken != nil) == serves)
                #expect(world.calls == Self.read)
            }
        }
        let words = SlotFormat.newerFormat(9)
        #expect(words.kind == .storageFailed)
        #expect(words.detail.contains("later version of canopyd has filled (format 9)"))
        #expect(words.detail.contains("run that version again"))
        #expect(words.detail.contains("canopyctl logout --local: that destroys it"))
    }

    @Test("A newer generation in the keyring is adopted without a request")
    func adopted() throws {
        let world = ScriptedWorld(Example.session(3))
        let known = Generation(signIn: Example.signIn, number: 2)
        #expect(reported(try rotate(world, known: known))?.header.generation == 3)
        #expect(world.calls == Self.read)
    }

    @Test("The first rotation completes a sign-in that was cut short")
    func completesPending() throws {
        let world = ScriptedWorld(Example.session(0, of: Example.otherSignIn))
        world.signIns = KnownSignIns(
            current: Example.signIn, pending: [Example.otherSignIn], marks: [Example.signIn: 7])
        #expect(reported(try rotate(world))?.header.generation == 1)
        #expect(world.signIns?.current == Example.otherSignIn)
        #expect(world.signIns?.pending.isEmpty == true)
        #expect(world.signIns?.knowsAlive(Example.signIn) == false)
        #expect(world.violations.isEmpty)
    }

    // MARK: Kills

    @Test("A18: a kill after any step, with the slot kept or lost, costs no session and no family")
    func killed() throws {
        for keepsSlot in [true, false] {
            for ambiguous in [true, false] {
                var step = 1
                while true {
                    let world = ScriptedWorld(Example.session(3), marked: 2)
                    if ambiguous { world.answers = [.lost("reset")] }
                    world.killedAfter = step
                    var isDone = false
                    do {
                        _ = try rotate(world)
                        isDone = true
                    } catch is ScriptedWorld.Killed {}
                    if !keepsSlot { world.slot = .empty }
                    // Two more, with time between them.
                    for _ in 0..<2 {
                        world.restart(after: 200)
                        let loaded = try Load(in: world).run()
                        #expect(reported(loaded) != nil, "nothing loaded after step \(step)")
                        let generation = reported(loaded)?.header.generation ?? 0
                        let next = try #require(reported(try rotate(world)), "step \(step)")
                        #expect(next.header.generation > generation)
                    }
                    #expect(!world.server.isFamilyEnded, "step \(step)")
                    #expect(world.violations == [], "step \(step)")
                    if isDone { break }
                    step += 1
                }
                #expect(step > 10)
            }
        }
    }

    @Test("While the keyring cannot be read, the access token beside the slot's successor serves")
    func slotServes() throws {
        for failure in [Self.locked, Failure(.keyringUnavailable, "no owner")] {
            let world = ScriptedWorld(Example.session(3), marked: 3)
            world.slot = .session(Example.session(4))
            world.faults = [("read item", .max, failure)]
            let report = try #require(reported(try rotate(world, mayPresent: false)))
            #expect(report.header.generation == 4 && report.storeFailure == failure)
            #expect(text(report.accessToken?.value) == "access-4" && !world.isSlotEmpty)
            #expect(world.count("present") == 0)
        }
    }

    @Test("What the slot holds serves only if it is newer than all that was presented, and alive")
    func slotSilent() throws {
        let older = ScriptedWorld(Example.session(3), marked: 4)
        older.slot = .session(Example.session(4))
        let newerCopy = ScriptedWorld(Example.session(3), marked: 3)
        newerCopy.runtimeMarks = [Example.signIn: 4]
        newerCopy.slot = .session(Example.session(4))
        let unknown = ScriptedWorld(Example.session(3), marked: 3)
        unknown.slot = .session(Example.session(4, of: Example.otherSignIn))
        let stateless = ScriptedWorld(Example.session(3), marked: 3)
        stateless.signIns = nil
        stateless.slot = .session(Example.session(4))
        let torn = ScriptedWorld(Example.session(3), marked: 3)
        torn.slot = .torn
        for world in [older, newerCopy, unknown, stateless, torn] {
            world.faults = [("read item", .max, Self.locked)]
            #expect(failed(try rotate(world, mayPresent: false)) == Self.locked)
            #expect(!world.isSlotEmpty)
        }
        let full = ScriptedWorld(Example.session(3), marked: 3)
        full.slot = .session(Example.session(4))
        full.faults = [("read item", .max, Self.broken)]
        #expect(failed(try rotate(full)) == Self.broken)
    }

    @Test("With nobody to keep the slot, the exchange does not end before its successor is stored")
    func orphan() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.isSlotKept = false
        world.faults = [("write item 4", 40, Self.locked)]
        let report = try #require(reported(try rotate(world)))
        #expect(report.storeFailure == nil && world.heldSession?.header.generation == 4)
        let kept = ScriptedWorld(Example.session(3), marked: 2)
        kept.faults = [("write item 4", 40, Self.locked)]
        #expect(try #require(reported(try rotate(kept))).storeFailure == Self.locked)
    }
}
