import AgentCore
import Testing

@Suite("Laws that the simulator taught")
struct SimulatedLawTests {
    @Test("A network that is down does not use up the quick repetitions of what got through")
    func repetitionsCountedApart() throws {
        let world = ScriptedWorld(Example.session(3), marked: 3)
        world.answers =
            Array(repeating: .notSent("no route"), count: 2)
            + Array(repeating: .lost("reset"), count: 2)
        let outcome = try Rotation(in: world, known: nil, mayPresent: true).run()
        guard case .session(let report) = outcome else {
            Issue.record("the last quick repetition was not made")
            return
        }
        #expect(report.header.generation == 4)
        let pauses = world.calls.filter { $0.hasPrefix("pause") }
        let quick = ["pause 1.5", "pause 6.0"]
        #expect(pauses == quick + quick)
    }

    @Test("Where the keyring writes late, the hold counts from the store, not from the answer")
    func lateStore() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        world.faults = [("write item 4", 100, Failure(.keyringLocked, "locked"))]
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        #expect(world.heldSession?.header.generation == 3)
        world.restart(after: 60)
        world.faults = []
        let outcome = try Rotation(in: world, known: nil, mayPresent: true).run()
        guard case .tooEarly(let report, let wait) = outcome else {
            Issue.record("a successor was presented that may not be on the disk")
            return
        }
        #expect(report.header.generation == 4 && wait > .seconds(14))
        #expect(world.heldSession?.header == report.header)
        #expect(report.slotKeptFor == RotationTiming.lateWrite && !world.isSlotEmpty)
    }

    @Test("What a late keyring was given stays in the slot until it has written")
    func keptSlot() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        guard
            case .session(let report) = try Rotation(in: world, known: nil, mayPresent: true).run()
        else {
            Issue.record("it did not rotate")
            return
        }
        #expect(report.storeFailure == nil && report.slotKeptFor == .milliseconds(7500))
        #expect(!report.isSlotRewritten)
        // While it is kept, nothing is written and nothing emptied.
        world.restart(after: 5)
        var outcome = try Rotation(
            in: world, known: nil, mayPresent: false, slotKeptFor: .seconds(2)
        ).run()
        guard case .session(let kept) = outcome else {
            Issue.record("looking at what is kept ended as something else")
            return
        }
        #expect(kept.slotKeptFor == .seconds(2) && world.count("write item") == 0)
        // Locked meanwhile, it is locked, and not in want of what it was given.
        world.faults = [("read item", 1, Failure(.keyringLocked, "locked"))]
        outcome = try Rotation(
            in: world, known: nil, mayPresent: false, slotKeptFor: .seconds(2)
        ).run()
        guard case .failed(let failure) = outcome, failure.kind == .keyringLocked else {
            Issue.record("a locked keyring was reported as something else")
            return
        }
        // The keyring ended before it wrote, and is back.
        world.item = .session(Example.session(3))
        world.restart(after: 1)
        outcome = try Rotation(
            in: world, known: nil, mayPresent: false, slotKeptFor: .seconds(1),
            isSlotRewritten: true
        ).run()
        guard case .session(let again) = outcome else {
            Issue.record("it ended as something else")
            return
        }
        #expect(world.heldSession?.header.generation == 4 && !world.isSlotEmpty)
        // What it lost it was given once, and no more.
        #expect(again.slotKeptFor == RotationTiming.lateWrite && !again.isSlotRewritten)
    }

    @Test("What nobody knows to be stored in a late keyring is stored once more, and kept")
    func lateUnknown() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        // As after the death of an exchange: its store may have been done a moment ago.
        world.restart(after: 60)
        guard
            case .session(let report) = try Rotation(in: world, known: nil, mayPresent: false).run()
        else {
            Issue.record("it ended as something else")
            return
        }
        #expect(world.count("write item 4") == 1 && !world.isSlotEmpty)
        #expect(report.slotKeptFor == RotationTiming.lateWrite && !report.isSlotRewritten)
    }

    @Test("A store of what was presented loses neither the attempt nor the wait, and adds none")
    func attemptKept() throws {
        for told in [nil, 300.0] {
            var presented = Example.session(3)
            presented.header.attemptedAt = Example.moment(-5).wall
            presented.header.notBefore = told.map {
                NotBefore(since: Example.stamp(-5), span: Example.span($0))
            }
            let world = ScriptedWorld(presented, marked: 3)
            world.keyringWritesAtOnce = false
            // Filled before another canopyd presented it, and left by one that has ended.
            world.slot = .session(Example.session(3))
            let outcome = try Rotation(in: world, known: nil, mayPresent: true).run()
            let stored = try #require(world.calls.firstIndex(of: "write item 3"))
            guard told != nil else {
                // The same bytes, within the grace.
                #expect(world.calls.firstIndex(of: "present a-3").map { $0 > stored } == true)
                #expect(world.count("pause") == 0)
                continue
            }
            guard case .failed(let failure) = outcome else {
                Issue.record("the server's Retry-After was not obeyed")
                continue
            }
            #expect(failure.kind == .throttled && failure.wait == .seconds(295))
            let held = try #require(world.heldSession)
            #expect(held.header.attemptedAt == presented.header.attemptedAt)
            // To a keyring that may not have written, the same bytes are no change.
            #expect(held != presented && world.count("present a-3") == 0)
        }
    }

    @Test("A failure after a late store does not leave the slot its old time")
    func lateFailure() throws {
        for failing in ["read item", "read state"] {
            let world = ScriptedWorld(Example.session(3), marked: 3)
            world.keyringWritesAtOnce = false
            world.slot = .session(Example.session(4))
            world.interference = (
                "sync",
                { $0.faults = [(failing, 1, Failure(.keyringUnavailable, "no answer"))] }
            )
            let outcome = try Rotation(
                in: world, known: nil, mayPresent: false, slotKeptFor: .seconds(1)
            ).run()
            guard case .session(let report) = outcome else {
                Issue.record("what was stored a moment ago would be settled a second later")
                return
            }
            #expect(report.storeFailure?.kind == .keyringUnavailable && !world.isSlotEmpty)
            #expect(world.heldSession?.header.generation == 4)
        }
    }

    @Test("The last exchange waits until a late keyring has written")
    func lastExchange() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        world.restart(after: 3)
        _ = try Rotation(
            in: world, known: nil, mayPresent: false, slotKeptFor: .seconds(4), isLast: true
        ).run()
        let calls = world.calls.filter { $0.hasPrefix("pause") || $0.hasPrefix("write item") }
        #expect(calls == ["pause 4.0", "write item 4", "pause 7.5"] && world.isSlotEmpty)
    }

    @Test("Without a slot, an exchange outlasts a late keyring, and stores again what that lost")
    func unkept() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        world.canFillSlot = false
        // The keyring ends, and is back, while the exchange waits.
        world.interference = ("pause 7.5", { $0.item = .session(Example.session(3)) })
        guard
            case .session(let report) = try Rotation(in: world, known: nil, mayPresent: true).run()
        else {
            Issue.record("it did not rotate")
            return
        }
        // Once in vain, then once after each of its two writes.
        #expect(world.count("pause 7.5") == 3 && report.slotKeptFor == nil)
        #expect(world.count("write item 4") == 3)
        #expect(world.heldSession?.header == report.header)
    }

    @Test("What the slot keeps is not presented")
    func keptUnpresented() throws {
        let world = ScriptedWorld(Example.session(), marked: nil)
        world.keyringWritesAtOnce = false
        world.slot = .session(Example.session())
        let outcome = try Rotation(
            in: world, known: nil, mayPresent: true, slotKeptFor: .seconds(9)
        ).run()
        guard case .tooEarly(let report, let wait) = outcome else {
            Issue.record("what the keyring may not have written was presented")
            return
        }
        #expect(wait == .seconds(9) && report.slotKeptFor == .seconds(9))
        #expect(world.count("present") == 0)
    }

    @Test("A sign-out that needs a new token waits for what the slot keeps")
    func keptSignOut() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        world.slot = .session(Example.session(3))
        world.answers = [Example.envelope(401, "not this one")]
        let outcome = try SignOut(in: world, isLocal: false, slotKeptFor: .seconds(9)).run()
        guard case .failed(let failure) = outcome, failure.kind == .throttled else {
            Issue.record("it ended as something else")
            return
        }
        #expect(failure.wait == .seconds(9))
        #expect(world.count("write item") == 0 && world.count("present a") == 0)
        #expect(!world.isSlotEmpty && world.heldSession != nil)
    }

    @Test("A late keyring that lost a sign-in, and brings back the one before, is given it again")
    func lateSignIn() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.server.next = [Example.otherSignIn]
        world.keyringWritesAtOnce = false
        let outcome = try SignIn(
            in: world, id: Example.otherSignIn, baseURL: Example.url,
            publishableKey: "pk_example"
        ).run()
        guard case .session(let report) = outcome else {
            Issue.record("nobody was signed in")
            return
        }
        #expect(report.slotKeptFor == RotationTiming.lateWrite && !world.isSlotEmpty)
        for lost in [ItemContents.session(Example.session(3)), .none] {
            world.item = lost
            world.restart(after: 2)
            _ = try Rotation(in: world, known: nil, mayPresent: false).run()
            #expect(world.heldSession?.header.signIn == Example.otherSignIn)
        }
        #expect(world.violations == [])
    }

    @Test("A kill between a late store and the emptying of the slot leaves a session that works")
    func lateStoreKilled() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        world.faults = [("write item 4", 100, Failure(.keyringLocked, "locked"))]
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        let slot = world.slot
        world.restart(after: 60)
        world.faults = []
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        // As if the slot had not been emptied: the item has a later hold than the slot.
        world.slot = slot
        world.restart(after: 1)
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        #expect(!world.isSlotEmpty)
        #expect(world.heldSession?.header.generation == 4)
    }

    @Test("An item that was stored later than its slot is the slot's, with a later hold")
    func laterHold() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        world.faults = [("write item 4", 3, Failure(.keyringLocked, "locked"))]
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        guard case .session(let slot) = world.slot else {
            Issue.record("the slot was emptied at once")
            return
        }
        #expect(world.heldSession?.header.notBefore != slot.header.notBefore)
        let outcome = try Rotation(
            in: world, known: nil, mayPresent: false, slotKeptFor: .zero, isSlotRewritten: true
        ).run()
        guard case .session(let report) = outcome else {
            Issue.record("what was stored is not taken for stored")
            return
        }
        #expect(report.storeFailure == nil && world.isSlotEmpty)
    }

    @Test("What a late keyring may have passed over is written twice, and the slot waits for it")
    func rewritten() throws {
        let signedIn = ScriptedWorld(Example.session(), marked: nil)
        signedIn.slot = .session(Example.session())
        let rotated = ScriptedWorld(Example.session(3), marked: 2)
        let ambiguous = ScriptedWorld(Example.session(3), marked: 3)
        for world in [signedIn, rotated, ambiguous] {
            world.keyringWritesAtOnce = false
            if world.isSlotEmpty {
                _ = try Rotation(in: world, known: nil, mayPresent: true).run()
            }
            let stored = try #require(world.heldSession)
            world.restart(after: 7.5)
            let outcome = try Rotation(
                in: world, known: nil, mayPresent: true, slotKeptFor: .zero
            ).run()
            guard case .tooEarly(let report, let wait) = outcome else {
                Issue.record("what it may have passed over was presented")
                continue
            }
            #expect(report.slotKeptFor == RotationTiming.lateWrite && report.isSlotRewritten)
            #expect(world.count("write item") == 1 && !world.isSlotEmpty)
            let held = try #require(world.heldSession)
            // The same bytes would be no change to it.
            #expect(held.header != stored.header && held.refreshToken == stored.refreshToken)
            // A hold is not shortened by it.
            let left = stored.header.notBefore?.remaining(at: world.now(), boot: world.boot)
            #expect(wait == max(left ?? .zero, RotationTiming.lateWrite))
            // Then it has written one of the two, and is only read back.
            world.restart(after: 7.5)
            _ = try Rotation(
                in: world, known: nil, mayPresent: false, slotKeptFor: .zero, isSlotRewritten: true
            ).run()
            #expect(world.isSlotEmpty && world.count("write item") == 0)
            #expect(world.count("read item") == 3)
        }
    }

    @Test("What was presented since is not written again: that would wait its grace away")
    func presentedSince() throws {
        var attempted = Example.session(3)
        attempted.header.attemptedAt = Example.moment().wall
        let world = ScriptedWorld(attempted, marked: 3)
        world.keyringWritesAtOnce = false
        world.slot = .session(Example.session(3))
        _ = try Rotation(in: world, known: nil, mayPresent: false, slotKeptFor: .zero).run()
        #expect(world.isSlotEmpty && world.count("write item") == 0)
        #expect(world.heldSession?.header.notBefore == nil)
    }

    @Test("The item of a late keyring names a hold that begins with its store")
    func holdFromStore() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.keyringWritesAtOnce = false
        world.faults = [("write item 4", 3, Failure(.keyringLocked, "locked"))]
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        let notBefore = try #require(world.heldSession?.header.notBefore)
        let left = notBefore.remaining(at: world.now(), boot: world.boot)
        #expect(left == RotationTiming.lateStoreHold)
    }

    @Test("Where the keyring writes late, the old sign-in counts until the new one has rotated")
    func lateWriter() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.server.next = [Example.otherSignIn]
        world.keyringWritesAtOnce = false
        _ = try SignIn(
            in: world, id: Example.otherSignIn, baseURL: Example.url,
            publishableKey: "pk_example"
        ).run()
        #expect(world.signIns?.knowsAlive(Example.signIn) == true)
        #expect(world.signIns?.knowsAlive(Example.otherSignIn) == true)
        // The power was cut before the keyring had written the new item.
        let afterCut = PresentationGuard.decide(
            PresentationGuard.Evidence(
                slot: .empty, item: .session(Example.session(3).header), signIns: world.signIns,
                runtimeMarks: [:], anchor: world.anchor, now: world.now(), boot: world.boot,
                known: nil, mayPresent: true))
        #expect(afterCut == .present(ambiguous: false))
        // And if it was not cut, the first rotation completes it.
        world.restart(after: 60)
        _ = try Rotation(
            in: world, known: nil, mayPresent: true, slotKeptFor: .zero, isSlotRewritten: true
        ).run()
        #expect(world.signIns?.current == Example.otherSignIn)
        #expect(world.signIns?.knowsAlive(Example.signIn) == false)
    }

    @Test("A portal's answers do not use up the quick repetitions of what gets past it")
    func repetitionsByCause() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.answers =
            Array(repeating: Example.answer(302, "<html>"), count: 4)
            + Array(repeating: .lost("reset"), count: 4)
        let outcome = try Rotation(in: world, known: nil, mayPresent: true).run()
        guard case .session(let report) = outcome else {
            Issue.record("the last quick repetition was not made")
            return
        }
        #expect(report.header.generation == 4)
        #expect(world.count("present a") == 9)
    }

    @Test("A portal's 200 ends no session")
    func portalSignOut() throws {
        for page in ["<html>Welcome to the hotel</html>", "{\"error\":\"sign in to the hotel\"}"] {
            let world = ScriptedWorld(Example.session(3), marked: 2)
            world.answers = [Example.answer(200, page)]
            let outcome = try SignOut(in: world, isLocal: false).run()
            guard case .failed(let failure) = outcome else {
                Issue.record("it was reported as ended")
                return
            }
            #expect(failure.kind == .somebodyInBetween)
            #expect(world.heldSession != nil && world.signIns?.expectsItem == true)
        }
    }

    @Test("A sign-out that cannot see the keyring ends what was begun, too")
    func signOutUnseen() throws {
        let world = ScriptedWorld(Example.session(3), marked: 2)
        world.server.next = [Example.otherSignIn]
        world.keyringWritesAtOnce = false
        _ = try SignIn(
            in: world, id: Example.otherSignIn, baseURL: Example.url,
            publishableKey: "pk_example"
        ).run()
        world.restart(after: 1)
        world.faults = [("read item", 100, Failure(.keyringLocked, "locked"))]
        _ = try SignOut(in: world, isLocal: true).run()
        world.restart(after: 60)
        world.faults = []
        world.item = .session(Example.session(0, of: Example.otherSignIn))
        guard case .signedOut = try Load(in: world).run() else {
            Issue.record("the session came back after the user had ended it")
            return
        }
        #expect(world.signIns?.knowsAlive(Example.otherSignIn) == false)
    }

    @Test("A hold that is over is not kept with a token that was presented")
    func holdIsOver() throws {
        let over = NotBefore(since: Example.stamp(), span: .seconds(120))
        let world = ScriptedWorld(Example.session(3, notBefore: over), marked: 2)
        world.restart(after: 120)
        world.answers = Array(repeating: .lost("reset"), count: 5)
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        #expect(world.count("present a") == 5)
        #expect(world.heldSession?.header.notBefore == nil)
    }

    @Test("A sign-in over a restored copy vouches for nothing that the copy speaks of")
    func signInOverCopy() throws {
        let world = ScriptedWorld(Example.session(3), marked: 3)
        world.signIns?.begin(Example.otherSignIn)
        world.isStateCopy = true
        world.answers = [Example.envelope(401, "wrong password")]
        _ = try SignIn(
            in: world, id: SignInID(high: 7, low: 7), baseURL: Example.url,
            publishableKey: "pk_example"
        ).run()
        #expect(world.signIns?.knowsAlive(Example.signIn) == false)
        #expect(world.signIns?.knowsAlive(Example.otherSignIn) == false)
        #expect(world.signIns?.death(of: Example.otherSignIn)?.reason == .restoredCopy)
    }

    @Test("A keyring that acknowledges a write and forgets it is not trusted with a token")
    func forgottenWrite() throws {
        let stale = Example.session(3)
        let world = ScriptedWorld(stale, marked: 2)
        world.interference = (
            "write item 3",
            { $0.interference = ("read item", { $0.item = .session(stale) }) }
        )
        let outcome = try Rotation(in: world, known: nil, mayPresent: true).run()
        guard case .failed(let failure) = outcome else {
            Issue.record("it was trusted")
            return
        }
        #expect(failure.kind == .keyringUnavailable && world.count("present a") == 0)
    }
}
