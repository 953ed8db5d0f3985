import AgentCore
import Testing

@Suite("Every refusal has a code, words, and a command where one helps")
struct RefusalsTests {
    private func profile() throws -> ProfileName { try ProfileName("work") }

    @Test("Every kind of failure", arguments: Failure.Kind.allCases)
    func failures(_ kind: Failure.Kind) throws {
        let expected: Problem.Code =
            switch kind {
            case .notPresented, .noAnswer, .somebodyInBetween: .serverUnreachable
            case .serverError: .serverError
            case .throttled: .throttled
            case .refused: .refused
            case .notNative: .keyNotNative
            case .keyringLocked: .keyringLocked
            case .keyringUnavailable, .successorUnstored: .keyringUnavailable
            case .storageFailed, .exchangeFailed: .storageFailed
            case .lockBusy: .timeout
            }
        let problem = Refusals.problem(
            Failure(kind, "the cause"), try profile(), retryAfter: .milliseconds(1001), keptBy: nil)
        #expect(problem.code == expected)
        #expect(problem.detail == "the cause")
        // A session by cookie is not asked for again, so there is nothing to wait for.
        #expect(problem.retryAfter == (kind == .notNative ? nil : 2))
        let hasFix = kind != .throttled && kind != .storageFailed
        #expect((problem.fix != nil) == hasFix)
        // That the exchange cannot run is nothing that space in the state directory mends.
        if kind == .exchangeFailed { #expect(problem.fix == "canopyctl doctor") }
    }

    @Test(
        "What mends the cause wins over what mends its kind, whichever refusal names it",
        arguments: Failure.Remedy.allCases)
    func remedies(_ remedy: Failure.Remedy) throws {
        let expected: String? =
            switch remedy {
            case .signInAnew:
                "canopyctl logout --local --profile work && canopyctl login --profile work"
            case .laterVersion: nil
            case .secretService: KeyringOwner.backEndFix
            case .examination: "canopyctl doctor"
            }
        let keeper = KeyringOwner(process: "gnome-keyring-daemon")
        for kind in [Failure.Kind.keyringUnavailable, .storageFailed, .successorUnstored] {
            let failure = Failure(kind, "the cause", remedy: remedy)
            let refusal = Refusal.failed(failure, retryAfter: .zero, expired: nil)
            let work = try profile()
            for problem in [
                Refusals.problem(failure, work, keptBy: keeper),
                Refusals.problem(refusal, work, keptBy: keeper),
                Refusals.signOutFailed(failure, work, keptBy: keeper),
                Refusals.revocationFailed(failure, work, keptBy: keeper),
            ] { #expect(problem.fix == expected) }
        }
        let standard = Refusals.problem(
            Failure(.keyringUnavailable, "damaged", remedy: .signInAnew), .standard, keptBy: keeper)
        #expect(standard.fix == "canopyctl logout --local && canopyctl login")
    }

    @Test("One item that is of no use says nothing of the keyring that holds it")
    func standing() {
        let well = KeyringStanding(.ok, owner: "gnome-keyring-daemon")
        for remedy in Failure.Remedy.allCases {
            let failure = Failure(.keyringUnavailable, "the cause", remedy: remedy)
            let isAboutItem = [.signInAnew, .laterVersion].contains(remedy)
            #expect(well.after(failure).state == (isAboutItem ? .ok : .unavailable))
        }
    }

    @Test(
        "A locked keyring is unlocked by its own program's command, whichever refusal names it",
        arguments: ["gnome-keyring-daemon", "kwalletd6", "keepassxc", "oo7-daemon"])
    func unlocking(_ process: String) throws {
        let keeper = KeyringOwner(process: process)
        let locked = Failure(.keyringLocked, "locked")
        let unstored = Failure(.successorUnstored, "locked", cause: .keyringLocked)
        let fixes = try [
            Refusals.problem(locked, try profile(), keptBy: keeper),
            Refusals.problem(unstored, try profile(), keptBy: keeper),
            Refusals.problem(
                Refusal.failed(locked, retryAfter: .zero, expired: nil), try profile(),
                keptBy: keeper),
            Refusals.signOutFailed(locked, try profile(), keptBy: keeper),
            Refusals.revocationFailed(locked, try profile(), keptBy: keeper),
        ].map(\.fix)
        #expect(fixes == Array(repeating: keeper.unlocking, count: 5))
        let gone = Failure(.keyringUnavailable, "gone")
        #expect(Refusals.problem(gone, try profile(), keptBy: keeper).fix == keeper.starting)
    }

    @Test("Every reason for a sign-in", arguments: SignInReason.allCases)
    func reasons(_ reason: SignInReason) throws {
        let problem = Refusals.problem(
            .signInRequired(reason), try profile(), keptBy: nil)
        #expect(problem.code == .signInRequired && problem.code.status == 401)
        #expect(problem.reason == reason && !problem.detail.isEmpty)
        #expect(problem.fix == "canopyctl login --profile work")
        #expect(Refusals.signInRequired(reason, .standard).fix == "canopyctl login")
    }

    @Test("Only a verdict and a sign-out are final")
    func final() {
        #expect(
            Set(SignInReason.allCases.filter(\.isFinal))
                == [.revokedOrExpired, .rotationLost, .signedOut])
    }

    @Test("A wait is whole seconds, rounded up, and never none")
    func waits() throws {
        for (wait, seconds) in [(-5.0, 1), (0, 1), (0.2, 1), (1, 1), (1.001, 2), (900, 900)] {
            let failure = Failure(.throttled, "wait", wait: Example.span(wait))
            #expect(
                Refusals.problem(failure, try profile(), keptBy: nil).retryAfter == Int64(seconds))
            // What is left of it counts, where that is known.
            #expect(
                Refusals.problem(failure, try profile(), retryAfter: .seconds(7), keptBy: nil)
                    .retryAfter == 7)
        }
        let endless = Failure(.throttled, "wait")
        #expect(Refusals.problem(endless, try profile(), keptBy: nil).retryAfter == nil)
    }

    @Test("For how long the last token has been over is told in one unit")
    func expired() throws {
        for (seconds, words) in [
            (0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"),
            (172_799, "47 h"), (172_800, "2 days"), (8_640_000, "100 days"),
            (63_071_999, "729 days"), (63_072_000, "1 years"), (946_708_560, "30 years"),
        ] as [(Int64, String)] {
            let refusal = Refusal.failed(
                Failure(.noAnswer, "the cause"), retryAfter: .seconds(1), expired: .seconds(seconds)
            )
            #expect(
                Refusals.problem(refusal, try profile(), keptBy: nil).detail
                    == "the cause; the last token expired \(words) ago")
        }
    }

    @Test("A sign-out that the server did not hear of names the local one")
    func signOut() throws {
        for kind in Failure.Kind.allCases {
            let problem = Refusals.signOutFailed(
                Failure(kind, "the cause"), try profile(), keptBy: nil)
            #expect(problem.code == Refusals.code(of: kind))
            switch kind {
            case .notPresented, .noAnswer, .serverError, .somebodyInBetween, .throttled,
                .refused, .notNative:
                #expect(problem.fix == "canopyctl logout --local --profile work")
                #expect(problem.detail.contains("nothing was forgotten"))
            case .keyringLocked, .keyringUnavailable, .storageFailed, .successorUnstored,
                .lockBusy, .exchangeFailed:
                #expect(problem.detail == "the cause")
            }
        }
    }

    @Test("What a sign-in was refused for")
    func rejections() throws {
        let rows: [(Rejection.Kind, Problem.Code, String?)] = [
            (.credentials, .credentialsRejected, "canopyctl login --profile work"),
            (.keyNotNative, .keyNotNative, "canopyctl login --profile work --key pk_NATIVE_KEY"),
            (.malformed, .badRequest, nil),
        ]
        for (kind, code, fix) in rows {
            let problem = Refusals.problem(Rejection(kind, "words"), try profile())
            #expect(problem.code == code && problem.fix == fix)
            #expect(problem.detail.hasPrefix("words"))
        }
        #expect(Refusals.unknownProfile(try profile()).code == .unknownProfile)
        let tooMuch = Refusals.problem(
            .validityAboveLifetime(.seconds(900)), try profile(), keptBy: nil)
        #expect(tooMuch.code == .badRequest && tooMuch.detail.contains("900 s"))
    }
}
