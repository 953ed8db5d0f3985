import AgentCore
import Testing

@Suite("A sign-in, a sign-out and a load, step by step")
struct SignInTests {
    private func signIn(_ world: ScriptedWorld) throws -> ExchangeOutcome {
        try SignIn(
            in: world, id: Example.otherSignIn, baseURL: Example.url,
            publishableKey: "pk_example"
        ).run()
    }

    private func world(_ session: StoredSession? = Example.session(3)) -> ScriptedWorld {
        let world = ScriptedWorld(session, marked: 3)
        world.server.next = [Example.otherSignIn]
        return world
    }

    private func reported(_ outcome: ExchangeOutcome) -> SessionReport? {
        if case .session(let report) = outcome { report } else { nil }
    }

    private func failed(_ outcome: ExchangeOutcome) -> Failure? {
        if case .failed(let failure) = outcome { failure } else { nil }
    }

    private static let broken = Failure(.storageFailed, "disk full")
    private static let begun = [
        "lock", "make anchor", "read state", "read item", "read slot", "write sign-ins",
        "presenting", "sign in",
    ]

    @Test("The new id is pending before the request, and alone once its item is stored")
    func order() throws {
        let world = world()
        let report = try #require(reported(try signIn(world)))
        #expect(
            world.calls == Self.begun + [
                "write item 0", "read item", "sync", "empty slot", "write sign-ins",
            ])
        #expect(world.written.first?.pending == [Example.otherSignIn])
        #expect(world.written.first?.current == Example.signIn)
        #expect(world.signIns?.current == Example.otherSignIn)
        #expect(world.signIns?.pending == [] && world.signIns?.marks == [:])
        #expect(world.signIns?.account == report.header.account)
        #expect(report.header.generation == 0 && report.header.lastRotation == nil)
        #expect(report.header.identity == Example.identity)
        #expect(!report.isAmbiguous)
    }

    @Test("What a locked collection may hide of the old sign-in does not keep from a new one")
    func hiddenBefore() throws {
        let locked = Failure(.keyringLocked, "locked")
        let world = world()
        world.faults = [("read item", 1, locked)]
        #expect(reported(try signIn(world))?.header.signIn == Example.otherSignIn)
        // The default collection itself has to be open.
        world.restart()
        world.server.next = [Example.otherSignIn]
        world.faults = [("read item", 2, locked)]
        #expect(failed(try signIn(world)) == locked)
        #expect(world.count("sign in") == 0)
        // And without an old one nothing is hidden.
        let fresh = self.world(nil)
        fresh.faults = [("read item", 1, locked)]
        #expect(failed(try signIn(fresh)) == locked)
    }

    @Test(
        "A password is not spent on a session that cannot be kept",
        arguments: ["make anchor", "read state", "read item", "write sign-ins"])
    func triedFirst(_ call: String) throws {
        let world = world()
        world.faults = [(call, 1, Self.broken)]
        #expect(failed(try signIn(world)) == Self.broken)
        #expect(world.count("sign in") == 0)
        #expect(world.signIns?.pending == [])
    }

    @Test("A slot that a later version has filled is not thrown away, unless that is asked for")
    func newerSlot() throws {
        let world = world()
        world.slot = .newerFormat(9)
        #expect(failed(try signIn(world)) == SlotFormat.newerFormat(9))
        #expect(world.count("sign in") == 0 && world.written.isEmpty && !world.isSlotEmpty)
        world.restart()
        #expect(failed(try SignOut(in: world, isLocal: false).run()) == SlotFormat.newerFormat(9))
        #expect(world.count("sign out") == 0 && world.written.isEmpty && !world.isSlotEmpty)
        world.restart()
        guard case .signedOut = try SignOut(in: world, isLocal: true).run() else {
            Issue.record("a local sign-out was refused")
            return
        }
        #expect(world.isSlotEmpty && world.heldSession == nil)
    }

    @Test("Whoever gives up what nobody here can read is obeyed, with a state directory or without")
    func givenUp() throws {
        let newer = Failure(.keyringUnavailable, "a later version's")
        for hasState in [true, false] {
            // The slot is a later version's, and the item may be, too, or there may be none.
            for item in [.session(Example.session(3)), ItemContents.none, nil] {
                let world = world()
                if !hasState { world.signIns = nil }
                world.slot = .newerFormat(nil)
                if let item {
                    world.item = item
                } else {
                    world.faults = [("read item", .max, newer)]
                    world.holdsUnreadableItem = true
                }
                #expect(isSignedOut(try signOut(world, isLocal: true)), "\(hasState)")
                #expect(world.isSlotEmpty && world.heldSession == nil)
                #expect(world.count("sign out") == 0)
                if case .session = item {
                    #expect(world.signIns?.death(of: Example.signIn)?.reason == .signedOut)
                }
                #expect(world.signIns?.expectsItem == false)
            }
        }
        // What is only locked away stays, where nothing would say that it is over.
        let locked = self.world()
        locked.signIns = nil
        locked.slot = .newerFormat(9)
        locked.faults = [("read item", .max, Self.broken)]
        #expect(failed(try signOut(locked, isLocal: true)) == Self.broken)
        #expect(!locked.isSlotEmpty && locked.written.isEmpty)
        // Nor is it forgotten before it is gone: no record tells that it is over.
        for hasState in [true, false] {
            let stuck = self.world()
            if !hasState { stuck.signIns = nil }
            stuck.holdsUnreadableItem = true
            stuck.faults = [("read item", .max, newer), ("delete item", 1, Self.broken)]
            #expect(failed(try signOut(stuck, isLocal: true)) == Self.broken)
            stuck.restart()
            #expect(isSignedOut(try signOut(stuck, isLocal: true)))
        }
    }

    @Test("A refusal, a challenge, a cookie and a lost answer leave the old session as it was")
    func refused() throws {
        let cookie = Example.answer(200, #"{"access_token":"a","expires_in":9}"#)
        for answer in [
            Example.envelope(401), Example.envelope(429), .lost("reset"), .notSent("no route"),
            Example.answer(200, #"{"requires_mfa_challenge":true}"#), cookie,
        ] {
            let world = world()
            world.answers = [answer]
            let before = world.signIns
            let outcome = try signIn(world)
            switch outcome {
            case .failed, .rejected, .challenged: break
            case .session, .tooEarly, .signInRequired, .signedOut, .document, .tokenRefused:
                Issue.record("signed in by \(answer)")
            }
            #expect(world.signIns == before)
            #expect(world.heldSession?.header.generation == 3)
            #expect(world.count("sign in") == 1 && world.count("write item") == 0)
            world.answers = []
            world.restart()
            #expect(
                reported(try Rotation(in: world, known: nil, mayPresent: true).run()) != nil)
        }
    }

    @Test("A session by cookie is ended, for nobody could ever refresh it")
    func cookie() throws {
        let world = world()
        world.answers = [Example.answer(200, #"{"access_token":"a","expires_in":9}"#)]
        guard case .rejected(let rejection) = try signIn(world) else {
            Issue.record("not rejected")
            return
        }
        #expect(rejection.kind == .keyNotNative)
        #expect(world.calls.last == "sign out {}")
    }

    @Test("A challenge is handed on with all that going on with it takes, and nothing is signed in")
    func challenge() throws {
        let world = world()
        let before = world.heldSession
        world.answers = [
            Example.answer(
                200,
                #"{"data":{"requires_mfa_challenge":true,"mfa_challenge":{"challenge_token":"t","#
                    + #""available_factors":["totp","smell"],"expires_at":"2026-04-20T09:02:00Z"}}}"#
            )
        ]
        guard case .challenged(let challenge) = try signIn(world) else {
            Issue.record("not challenged")
            return
        }
        #expect(challenge.factors == ["totp", "smell"])
        #expect(challenge.expiresAt == Example.moment(120).wall)
        let continuation = try #require(
            SignInContinuation(challenge.continuation, in: .ordinary))
        #expect(continuation.id == challenge.id && text(continuation.token) == "t")
        #expect(continuation.challenge(in: .ordinary) == challenge)
        #expect(world.heldSession == before && world.signIns?.pending == [])
    }

    @Test("What is not stored is not signed in, and is ended on the server")
    func unstored() throws {
        let world = world()
        world.faults = [("write item", .max, Self.broken)]
        #expect(failed(try signIn(world)) == Self.broken)
        #expect(world.calls.last == "sign out b-0")
        #expect(world.count("pause") == 20)
        #expect(world.heldSession?.header.signIn == Example.signIn)
        #expect(world.signIns?.current == Example.signIn && world.signIns?.pending == [])
        world.faults = []
        world.restart()
        #expect(reported(try Rotation(in: world, known: nil, mayPresent: true).run()) != nil)
        #expect(world.violations.isEmpty)
    }

    @Test("A sign-in that was written and cannot be made durable is kept: the next look decides")
    func unsynced() throws {
        let world = world()
        world.faults = [("sync", .max, Self.broken)]
        #expect(failed(try signIn(world)) == Self.broken)
        #expect(world.count("sign out b-0") == 0)
        world.faults = []
        world.restart()
        let report = try #require(reported(try Load(in: world).run()))
        #expect(report.header.signIn == Example.otherSignIn)
    }

    @Test("A sign-in whose second phase is not written works all the same")
    func secondPhaseFails() throws {
        let world = world()
        world.interference = (
            "empty slot", { $0.faults = [("write sign-ins", 1, Self.broken)] }
        )
        #expect(reported(try signIn(world)) != nil)
        #expect(world.signIns?.current == Example.signIn)
        world.restart()
        #expect(reported(try Load(in: world).run())?.header.signIn == Example.otherSignIn)
        #expect(reported(try Rotation(in: world, known: nil, mayPresent: true).run()) != nil)
        #expect(world.signIns?.current == Example.otherSignIn)
        #expect(world.violations.isEmpty)
    }

    @Test("After a kill at any step, the old session or the new one works")
    func killed() throws {
        for old in [Example.session(3), nil] {
            var step = 1
            while true {
                let world = world(old)
                // A successor of the old sign-in waits in the slot.
                if old != nil { world.slot = .session(Example.session(4)) }
                world.server.issued[Example.signIn] = 4
                world.killedAfter = step
                var isDone = false
                do {
                    _ = try signIn(world)
                    isDone = true
                } catch is ScriptedWorld.Killed {}
                world.restart(after: 200)
                switch try Load(in: world).run() {
                case .session(let report):
                    #expect(old != nil || report.header.signIn == Example.otherSignIn)
                    let next = try Rotation(in: world, known: nil, mayPresent: true).run()
                    let rotated = try #require(self.reported(next), "step \(step)")
                    #expect(rotated.header.signIn == report.header.signIn)
                    #expect(rotated.header.generation > report.header.generation)
                case .signedOut:
                    #expect(old == nil && world.heldSession == nil, "step \(step)")
                case .failed, .signInRequired, .tooEarly, .rejected, .challenged, .document,
                    .tokenRefused:
                    Issue.record("nothing works after step \(step)")
                }
                #expect(!world.server.isFamilyEnded && world.violations == [])
                if isDone { break }
                step += 1
            }
            #expect(step > 10)
        }
    }

    // MARK: Sign-out

    private func signOut(_ world: ScriptedWorld, isLocal: Bool = false) throws -> ExchangeOutcome {
        try SignOut(in: world, isLocal: isLocal).run()
    }

    private func isSignedOut(_ outcome: ExchangeOutcome) -> Bool {
        if case .signedOut = outcome { true } else { false }
    }

    private static let forgotten = [
        "read state", "write sign-ins", "empty slot", "delete item", "sync",
    ]

    @Test("The server is told first, then the end is recorded, then it is deleted")
    func signOutOrder() throws {
        let world = world()
        #expect(isSignedOut(try signOut(world)))
        #expect(
            world.calls == [
                "lock", "read state", "read item", "read slot", "presenting", "sign out a-3",
            ] + Self.forgotten)
        #expect(world.signIns?.death(of: Example.signIn)?.reason == .signedOut)
        #expect(world.signIns?.current == nil && world.heldSession == nil)
        world.restart()
        #expect(isSignedOut(try Load(in: world).run()))
    }

    @Test("Nothing is forgotten that the server was not told of")
    func unreachable() throws {
        for answer in [
            Transmission.notSent("no route"), .lost("reset"), Example.answer(302, ""),
            Example.answer(401, "<html>"), Example.envelope(403), Example.envelope(429),
            Example.answer(502, ""),
        ] {
            let world = world()
            let before = world.signIns
            world.answers = [answer]
            #expect(failed(try signOut(world)) != nil)
            #expect(world.signIns == before && world.heldSession != nil)
            #expect(world.count("write") == 0 && world.count("delete") == 0)
        }
    }

    @Test("A session that the server has ended already is forgotten")
    func endedAlready() throws {
        let world = world()
        world.server.isSessionOver = true
        #expect(isSignedOut(try signOut(world)))
        #expect(world.count("sign out") == 1 && world.count("present a-3") == 1)
    }

    @Test("A 401 may be the access token's end alone: the session is ended with a new one")
    func refusedAccessToken() throws {
        let world = world()
        world.answers = [Example.envelope(401)]
        #expect(isSignedOut(try signOut(world)))
        #expect(world.count("present a-3") == 1 && world.count("sign out a-4") == 1)
        #expect(world.violations.isEmpty)

        let strange = self.world()
        strange.answers = [
            Example.envelope(401), ScriptedServer.grant(4, of: Example.signIn),
            Example.envelope(401, "never"),
        ]
        #expect(failed(try signOut(strange)) == Failure(.refused, "never"))
        #expect(strange.heldSession != nil && strange.count("delete") == 0)
    }

    @Test("A restored copy is signed out without naming its old refresh token")
    func restoredCopySignedOut() throws {
        let world = world()
        world.signIns?.raiseMark(of: Example.signIn, to: 4)
        #expect(isSignedOut(try signOut(world)))
        #expect(world.calls.filter { $0.hasPrefix("sign out") } == ["sign out {}"])
        #expect(world.heldSession == nil)
    }

    @Test("A server that wants an empty body gets one")
    func emptyBody() throws {
        let world = world()
        world.answers = [Example.envelope(400)]
        #expect(isSignedOut(try signOut(world)))
        #expect(world.count("sign out {}") == 1)
    }

    @Test("A local sign-out asks nobody, and needs no keyring")
    func local() throws {
        let world = world()
        #expect(isSignedOut(try signOut(world, isLocal: true)))
        #expect(world.count("sign out") == 0)
        let locked = self.world()
        locked.faults = [("read item", .max, Self.broken), ("delete item", .max, Self.broken)]
        #expect(isSignedOut(try signOut(locked, isLocal: true)))
        #expect(locked.signIns?.death(of: Example.signIn)?.reason == .signedOut)
        let remote = self.world()
        remote.faults = [("read item", .max, Self.broken)]
        #expect(failed(try signOut(remote)) == Self.broken)
        #expect(remote.signIns?.death(of: Example.signIn) == nil)
    }

    @Test("A sign-out that cannot be recorded fails, and deletes nothing")
    func unrecorded() throws {
        for isLocal in [true, false] {
            let world = world()
            world.faults = [("write sign-ins", 1, Self.broken)]
            #expect(failed(try signOut(world, isLocal: isLocal)) == Self.broken)
            #expect(world.heldSession != nil && world.count("delete") == 0)
        }
    }

    @Test("An access token that is over is renewed first")
    func renewed() throws {
        let world = ScriptedWorld(Example.session(3, access: Example.life(sent: -900)))
        #expect(isSignedOut(try signOut(world)))
        #expect(world.count("present a-3") == 1 && world.count("sign out a-4") == 1)
        #expect(world.violations.isEmpty)
        let unreachable = ScriptedWorld(Example.session(3, access: Example.life(sent: -900)))
        unreachable.answers = [.notSent("no route")]
        #expect(failed(try signOut(unreachable))?.kind == .notPresented)
        #expect(unreachable.heldSession != nil)
    }

    @Test("A successor that waits in the slot is what is named")
    func slotNamed() throws {
        let world = world()
        world.slot = .session(Example.session(4))
        #expect(isSignedOut(try signOut(world)))
        #expect(world.count("sign out a-4") == 1 && world.isSlotEmpty)
    }

    @Test("A session that is in the slot alone is ended on the server, too")
    func slotAlone() throws {
        for isLocal in [true, false] {
            let world = world()
            world.slot = .session(Example.session(4))
            world.item = .none
            #expect(isSignedOut(try signOut(world, isLocal: isLocal)))
            #expect(world.count("sign out a-4") == (isLocal ? 0 : 1) && world.isSlotEmpty)
            #expect(world.signIns?.death(of: Example.signIn)?.reason == .signedOut)
        }
        let stranger = self.world()
        stranger.item = .none
        stranger.slot = .session(Example.session(0, of: Example.otherSignIn))
        #expect(isSignedOut(try signOut(stranger)))
        #expect(stranger.count("sign out") == 0)
    }

    @Test("After a kill at any step of a sign-out, it is done by doing it again")
    func signOutKilled() throws {
        var step = 1
        while true {
            let world = world()
            world.killedAfter = step
            var isDone = false
            do {
                _ = try signOut(world)
                isDone = true
            } catch is ScriptedWorld.Killed {}
            world.restart()
            #expect(isSignedOut(try signOut(world)), "step \(step)")
            #expect(world.heldSession == nil && world.signIns?.expectsItem == false)
            #expect(!world.server.isFamilyEnded)
            if isDone { break }
            step += 1
        }
        #expect(step == 12)
    }

    // MARK: Load

    @Test("A load takes no lock, presents nothing, and says what it found")
    func load() throws {
        let world = world()
        let report = try #require(reported(try Load(in: world).run()))
        #expect(world.calls == ["read state", "read item"])
        #expect(report.isAmbiguous && text(report.accessToken?.value) == "access-3")
        for call in ["read state", "read item"] {
            world.faults = [(call, 1, Self.broken)]
            #expect(failed(try Load(in: world).run()) == Self.broken)
        }
        world.item = .none
        guard case .signInRequired(.keyringReset, _, _) = try Load(in: world).run() else {
            Issue.record("a reset keyring was not noticed")
            return
        }
    }
}
