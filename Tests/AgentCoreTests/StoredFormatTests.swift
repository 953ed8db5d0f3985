import AgentCore
import Testing

@Suite("What is stored or sent comes back equal, and damage is an error")
struct StoredFormatTests {
    private static let sessions: [StoredSession] = [
        Example.session(0, access: nil),
        Example.session(
            7, lastRotation: Example.stamp(-5, boot: Example.otherBoot),
            notBefore: NotBefore(since: Example.stamp(), span: .seconds(120)),
            access: Example.life(900, sent: -3, expiry: 897, offset: -86_400)),
        Example.session(.max, of: Example.otherSignIn, access: Example.life(0.5)),
    ]

    private func bytes(_ secret: Secret) -> [UInt8] { secret.withBytes { Array($0) } }

    private func malformed(_ text: String) -> StoredSession.Unreadable? {
        do throws(StoredSession.Unreadable) {
            _ = try Example.secret(text).withBytes { bytes throws(StoredSession.Unreadable) in
                try StoredSession(decoding: bytes, in: .ordinary)
            }
            return nil
        } catch {
            return error
        }
    }

    @Test("A session is stored and read back whole", arguments: sessions.indices)
    func session(_ index: Int) throws {
        var session = Self.sessions[index]
        session.header.attemptedAt = index == 1 ? Example.moment(3).wall : nil
        let stored = session.encoded(in: .ordinary)
        let back = try stored.withBytes { try StoredSession(decoding: $0, in: .ordinary) }
        #expect(back == session)
        #expect(bytes(back.encoded(in: .ordinary)) == bytes(stored))
    }

    @Test("A newer format is told from a damaged one, and each member's damage is named")
    func damage() {
        let good = text(Self.sessions[1].encoded(in: .ordinary)) ?? ""
        #expect(malformed(good) == nil)
        #expect(
            malformed(good.replacing(#""version":1"#, with: #""version":2,"#)) != .newerFormat(2))
        #expect(
            malformed(good.replacing(#""version":1"#, with: #""version":2"#)) == .newerFormat(2))
        #expect(malformed(#"{"version":99}"#) == .newerFormat(99))
        for version in ["0", "-1", "\"1\"", "1.0", "null"] {
            #expect(
                malformed(good.replacing(#""version":1"#, with: #""version":\#(version)"#))
                    == .malformed("version"))
        }
        for member in [
            "version", "sign_in", "generation", "refresh_token", "url", "publishable_key",
            "identity_id", "identity_email", "signed_in_ms", "anchor_inode", "anchor_birth_ns",
            "access_lifetime_ns", "access_type", "access_sent",
        ] {
            #expect(
                malformed(good.replacing("\"\(member)\":", with: "\"x\":")) == .malformed(member))
        }
        #expect(
            malformed(good.replacing(#""generation":7"#, with: #""generation":-7"#))
                == .malformed("generation"))
        #expect(
            malformed(good.replacing(#""refresh_token":"a-7""#, with: #""refresh_token":"""#))
                == .malformed("refresh_token"))
        for text in ["", "{", "[]", "null", "{}"] { #expect(malformed(text) != nil) }
    }

    @Test("The slot's bytes are whole or torn, and cut anywhere they are torn")
    func slot() throws {
        let session = Self.sessions[1]
        let body = bytes(session.encoded(in: .ordinary))
        let slot = body.withUnsafeBytes { SlotFormat.header(for: $0) } + body
        guard case .session(let back) = read(slot) else {
            Issue.record("not read back")
            return
        }
        #expect(back == session)
        // The header is written last: of a write that was cut short it is zeros.
        let cut = Array(repeating: UInt8(0), count: SlotFormat.headerBytes) + body
        for count in 0..<cut.count {
            switch read(Array(cut[..<count])) {
            case .empty: #expect(count == 0)
            case .torn: #expect(count > 0)
            case .session, .newerFormat: Issue.record("a cut slot was taken for a session")
            }
        }
    }

    @Test("A slot that lacks only its header is as good as one that has it")
    func headerless() {
        let session = Self.sessions[1]
        let zeros = [UInt8](repeating: 0, count: SlotFormat.headerBytes)
        guard case .session(let back) = read(zeros + bytes(session.encoded(in: .ordinary))) else {
            Issue.record("a successor was thrown away")
            return
        }
        #expect(back == session)
    }

    @Test("What no write of ours leaves, cut short or not, may be a successor of somebody's")
    func foreign() throws {
        let body = bytes(Self.sessions[1].encoded(in: .ordinary))
        let slot = body.withUnsafeBytes { SlotFormat.header(for: $0) } + body
        // Still JSON, still a session, and not what was written: generation 7 became 6.
        let text = Array(#""generation":7"#.utf8)
        let place = try #require(
            (0..<slot.count - text.count).first { slot[$0...].starts(with: text) })
        var changed = slot
        changed[place + text.count - 1] ^= 1
        var otherMagic = slot
        otherMagic[3] ^= 1
        var foreign = [changed, otherMagic, slot + [0], Array(slot.dropLast()), [7]]
        foreign += (1...SlotFormat.headerBytes).map { Array(slot[..<$0]) }
        for bytes in foreign {
            guard case .newerFormat(nil) = read(bytes) else {
                Issue.record("\(bytes.count) bytes would be emptied, or stored")
                continue
            }
        }
    }

    @Test("A slot in a newer format is told from a torn one, as an item is from a damaged one")
    func newerSlot() throws {
        let body = bytes(Self.sessions[1].encoded(in: .ordinary))
        let good = String(decoding: body, as: UTF8.self)
        func contents(_ text: String) -> SlotContents {
            let body = Array(text.utf8)
            return read(body.withUnsafeBytes { SlotFormat.header(for: $0) } + body)
        }
        let newer = good.replacing(#""version":1"#, with: #""version":99"#)
        for text in [newer, #"{"version":99,"what":"it has by then"}"#] {
            guard case .newerFormat(99) = contents(text) else {
                Issue.record("not told as newer: \(contents(text).reading)")
                return
            }
        }
        // Whole as its header has it, and no session: who knows to whom.
        for text in [good.replacing(#""version":1"#, with: #""version":0"#), "{}", "what"] {
            guard case .newerFormat(nil) = contents(text) else {
                Issue.record("\(text): would be emptied")
                return
            }
        }
    }

    private func read(_ slot: [UInt8]) -> SlotContents {
        withExactCopy(of: slot) { SlotFormat.read($0, in: .ordinary) }
    }

    // MARK: Jobs and reports

    /// The message without the length in front, which is checked.
    private func message(_ encoded: Secret) throws -> [UInt8] {
        let all = bytes(encoded)
        #expect(all.withUnsafeBytes { FieldReader.length($0) } == .length(all.count))
        return Array(all.dropFirst(4))
    }

    private func jobs() throws -> [Job] {
        var full = Job(
            .rotate, profiles: [try ProfileName("work")], machine: "m", boot: Example.boot,
            stateDirectory: "/state", runtimeDirectory: "/run")
        full.caFile = "/ca.pem"
        full.proxy = "http://proxy:1"
        full.known = Generation(signIn: Example.signIn, number: 7)
        full.mayPresent = true
        full.isLocal = true
        full.slotKeptFor = .zero
        full.isSlotRewritten = true
        full.isLast = true
        full.secret = Example.secret("s\0\n")
        full.baseURL = Example.url
        full.publishableKey = "pk_1"
        full.sessionID = "id/..?"
        return try [
            full,
            Job(
                .load, profiles: [.standard, ProfileName("b"), ProfileName("c")], machine: "",
                boot: Example.boot, stateDirectory: "", runtimeDirectory: nil),
            Job(
                .load, profiles: [], machine: "m", boot: Example.boot, stateDirectory: "/s",
                runtimeDirectory: nil),
        ]
    }

    private func reports() -> [Report] {
        let failure = Failure(.throttled, "wait", wait: .seconds(5))
        var outcomes: [ExchangeOutcome] = [
            .signedOut,
            .document(Example.secret("{}")),
            .challenged(
                SignInContinuation(
                    id: Example.signIn, baseURL: Example.url, publishableKey: "pk",
                    token: Example.secret("t"), factors: ["totp", ""],
                    expiresAt: Example.moment().wall
                ).challenge(in: .ordinary)),
            .tooEarly(Example.report(3), .seconds(9)),
            .session(Example.report(3, slotKeptFor: .seconds(15))),
            .session(Example.report(3, slotKeptFor: .seconds(15), isSlotRewritten: true)),
            .session(
                Example.report(
                    3, lastRotation: Example.stamp(), isAmbiguous: true,
                    storeFailure: Failure(.keyringLocked, "locked"))),
        ]
        outcomes += Self.sessions.map { .session(SessionReport($0, isAmbiguous: false)) }
        outcomes += Failure.Kind.allCases.map { .failed(Failure($0, "d")) } + [.failed(failure)]
        outcomes += SignInReason.allCases.map { .signInRequired($0, "words") }
        outcomes.append(.signInRequired(.restoredCopy, "", account: Example.header().account))
        outcomes.append(.tokenRefused("words (401)"))
        outcomes += Rejection.Kind.allCases.map { .rejected(Rejection($0, "words")) }
        return outcomes.map { .ended(.standard, $0) } + [
            .progress(.presenting), .progress(.retrying(failure)),
            .keyring(KeyringStanding(.ok, owner: "gnome-keyring-daemon")),
            .keyring(KeyringStanding(.unavailable, owner: nil)),
            .keyring(KeyringStanding(.locked, owner: "kwalletd6", collection: "/a/b")),
            .searched(nil), .searched(failure), .memoryUnlocked("mlock: no"),
            .progress(
                .retrying(Failure(.successorUnstored, "d", cause: .keyringUnavailable))),
        ]
    }

    @Test("A job comes out as it went in")
    func job() throws {
        for job in try jobs() {
            let message = try message(job.encoded(in: .ordinary))
            #expect(withExactCopy(of: message) { Job(decoding: $0, in: .ordinary) } == job)
        }
    }

    @Test("A job of a canopyd that knows of no second store asks for none")
    func jobOfEarlierVersion() throws {
        // Tag 21, one byte of 8 that say 0: what such a canopyd does not write.
        let field = [21, 0, 0, 0, 8] + [UInt8](repeating: 0, count: 8)
        var job = try jobs()[0]
        job.isSlotRewritten = false
        var bytes = try message(job.encoded(in: .ordinary))
        let at = try #require(bytes.firstRange(of: field))
        bytes.removeSubrange(at)
        job.isSlotRewritten = true
        #expect(withExactCopy(of: bytes) { Job(decoding: $0, in: .ordinary) } == job)
    }

    @Test("Only a load and an examination are of several profiles, or of none")
    func severalProfiles() throws {
        for kind in JobKind.allCases {
            for count in [0, 1, 2] {
                let job = Job(
                    kind, profiles: Array(repeating: .standard, count: count), machine: "m",
                    boot: Example.boot, stateDirectory: "/s", runtimeDirectory: nil)
                let message = try message(job.encoded(in: .ordinary))
                let back = withExactCopy(of: message) { Job(decoding: $0, in: .ordinary) }
                let isFree = kind == .load || kind == .examine
                #expect((back != nil) == (isFree || count == 1))
            }
        }
    }

    @Test("A report comes out as it went in")
    func report() throws {
        for report in reports() {
            let message = try message(report.encoded(in: .ordinary))
            let back = try #require(
                withExactCopy(of: message) { Report(decoding: $0, in: .ordinary) })
            #expect(try self.message(back.encoded(in: .ordinary)) == message)
            switch (report, back) {
            case (.ended(_, .session(let sent)), .ended(_, .session(let got))),
                (.ended(_, .tooEarly(let sent, _)), .ended(_, .tooEarly(let got, _))):
                #expect(sent == got)
            case (.ended(_, .failed(let sent)), .ended(_, .failed(let got))),
                (.progress(.retrying(let sent)), .progress(.retrying(let got))):
                #expect(sent == got)
            case (
                .ended(_, .signInRequired(_, _, let sent)),
                .ended(_, .signInRequired(_, _, let got))
            ):
                #expect(sent == got)
            default: break
            }
        }
    }

    @Test("A length is read from four bytes, and an impossible one is refused")
    func length() {
        func length(_ bytes: [UInt8]) -> FieldReader.LengthReading {
            withExactCopy(of: bytes) { FieldReader.length($0) }
        }
        #expect(length([]) == .incomplete && length([0, 0, 0]) == .incomplete)
        #expect(length([0, 0, 0, 0]) == .malformed && length([0, 0, 0, 1]) == .length(5))
        #expect(length([255, 255, 255, 255]) == .malformed)
    }

    @Test("Any damage to what is stored or sent is an error or a value, never a trap")
    func anyDamage() throws {
        var generator = SeededGenerator(seed: 11)
        let stored = Self.sessions.map { bytes($0.encoded(in: .ordinary)) }
        let messages =
            try jobs().map { try message($0.encoded(in: .ordinary)) }
            + reports().map { try message($0.encoded(in: .ordinary)) }
        for _ in 0..<3000 {
            let session = generator.mutated(stored.randomElement(using: &generator) ?? [])
            _ = withExactCopy(of: session) { bytes in
                Result { try StoredSession(decoding: bytes, in: .ordinary) }
            }
            _ = read(
                generator.mutated(session.withUnsafeBytes { SlotFormat.header(for: $0) } + session))
            let message = generator.mutated(messages.randomElement(using: &generator) ?? [])
            withExactCopy(of: message) { bytes in
                _ = Job(decoding: bytes, in: .ordinary)
                if case .ended(_, .session(let report)) = Report(decoding: bytes, in: .ordinary) {
                    serve(report)
                }
            }
        }
    }

    /// Whatever a report says, canopyd goes on.
    private func serve(_ report: SessionReport) {
        var machine = RotationMachine(boot: Example.boot)
        machine.exchangeBegan(.load, at: Example.moment().boot)
        machine.exchangeEnded(.session(report), at: Example.moment(), draw: 0.5)
        _ = machine.step(at: Example.moment().boot)
        _ = machine.verdict(minimumValidity: nil, at: Example.moment())
        _ = machine.access.map { Timestamp.rfc3339($0.life.expiresAt) }
        machine.validityWanted(at: Example.moment())
    }
}

@Suite("What the state directory knows of sign-ins")
struct KnownSignInsTests {
    private static func death(
        _ signIn: SignInID = Example.signIn, _ reason: SignInReason = .revokedOrExpired
    ) -> KnownSignIns.Death {
        KnownSignIns.Death(
            signIn: signIn, generation: 3, reason: reason, at: Example.moment().wall)
    }

    private static let full = KnownSignIns(
        current: Example.signIn, pending: [Example.otherSignIn, SignInID(high: 1, low: 2)],
        marks: [Example.signIn: 7, Example.otherSignIn: 0],
        dead: [death(SignInID(high: 3, low: 4)), death(SignInID(high: 5, low: 6), .signedOut)],
        account: Example.header().account)

    private func decoded(_ bytes: [UInt8]) throws(KnownSignIns.Unreadable) -> KnownSignIns {
        let copy = bytes.withUnsafeBytes { Secret(copying: $0, in: .ordinary) }
        return try copy.withBytes { bytes throws(KnownSignIns.Unreadable) in
            try KnownSignIns(decoding: bytes)
        }
    }

    @Test("It comes back equal, and is written the same each time")
    func roundTrip() throws {
        for known in [KnownSignIns(), KnownSignIns(pending: [Example.signIn]), Self.full] {
            let bytes = known.encoded(in: Example.anchor)
            #expect(try decoded(bytes) == known)
            #expect(try decoded(bytes).encoded(in: Example.anchor) == bytes)
        }
    }

    @Test("A damaged file is refused by the name of the member, a newer one by its version")
    func damage() {
        let good = String(decoding: Self.full.encoded(in: Example.anchor), as: UTF8.self)
        func unreadable(_ text: String) -> KnownSignIns.Unreadable? {
            do throws(KnownSignIns.Unreadable) {
                _ = try decoded(Array(text.utf8))
                return nil
            } catch {
                return error
            }
        }
        for member in ["version", "pending", "marks", "dead"] {
            #expect(
                unreadable(good.replacing("\"\(member)\":", with: "\"x\":")) == .malformed(member))
        }
        for (old, new, member) in [
            (#""version":1"#, #""version":0"#, "version"),
            (#""current":"00"#, #""current":"0"#, "current"),
            (#""current":""#, #""current":null,"x":""#, "current"),
            (#""pending":[""#, #""pending":[7,""#, "pending"),
            (#""pending":["#, #""pending":{},"x":["#, "pending"),
            (":7", ":-7", "marks"), (":7", ":7.5", "marks"),
            (#""marks":{"#, #""marks":{"x":1,"#, "marks"),
            ("signed_out", "singed_out", "dead"), (#""generation":3"#, #""g":3"#, "dead"),
            (#""at_ms":"#, #""at":"#, "dead"),
        ] {
            #expect(unreadable(good.replacing(old, with: new)) == .malformed(member))
        }
        #expect(
            unreadable(good.replacing(#""version":1"#, with: #""version":2"#)) == .newerFormat(2))
        for text in ["", "{", "[]", "null"] { #expect(unreadable(text) != nil) }
    }

    @Test("Random damage never traps")
    func anyDamage() {
        var generator = SeededGenerator(seed: 5)
        let good = Self.full.encoded(in: Example.anchor)
        for _ in 0..<3000 {
            let bytes = generator.mutated(good)
            withExactCopy(of: bytes) { bytes in
                _ = Result { try KnownSignIns(decoding: bytes) }
            }
        }
    }

    @Test("A mark is lowered by taking it back, and by nothing else")
    func marks() {
        var known = KnownSignIns(current: Example.signIn)
        #expect(known.mark(of: Example.signIn) == nil)
        known.raiseMark(of: Example.signIn, to: 4)
        known.raiseMark(of: Example.signIn, to: 2)
        #expect(known.mark(of: Example.signIn) == 4)
        known.begin(Example.otherSignIn)
        known.abandon(Example.otherSignIn)
        known.bury(Self.death())
        #expect(known.mark(of: Example.signIn) == 4)
        known.withdrawMark(of: Example.signIn, to: 3)
        #expect(known.mark(of: Example.signIn) == 3)
        known.withdrawMark(of: Example.signIn, to: nil)
        #expect(known.mark(of: Example.signIn) == nil)
    }

    @Test("A completed sign-in counts alone; the dead stay dead for ever")
    func complete() {
        var known = Self.full
        known.begin(Example.otherSignIn)
        #expect(known.pending.count == 2)
        known.complete(Example.otherSignIn, account: Example.header().account)
        #expect(known.current == Example.otherSignIn && known.pending == [])
        #expect(known.marks == [Example.otherSignIn: 0])
        #expect(known.dead == Self.full.dead)
        #expect(!known.knowsAlive(Example.signIn) && known.knowsAlive(Example.otherSignIn))
        known.begin(Example.signIn)
        known.begin(Example.signIn)
        #expect(known.pending == [Example.signIn])
        known.bury(Self.death(Example.signIn))
        #expect(known.pending == [])
        known.bury(Self.death(Example.otherSignIn))
        known.complete(Example.otherSignIn, account: Example.header().account)
        #expect(!known.knowsAlive(Example.otherSignIn) && !known.expectsItem)
    }

    @Test("A verdict keeps the profile known, a sign-out does not, and the first reason stays")
    func bury() {
        var ended = Self.full
        ended.bury(Self.death())
        #expect(ended.current == Example.signIn && !ended.expectsItem)
        #expect(ended.account != nil)
        ended.bury(Self.death(Example.signIn, .signedOut))
        #expect(ended.death(of: Example.signIn)?.reason == .revokedOrExpired)
        #expect(ended.current == nil && ended.account == nil)
        var pending = Self.full
        pending.bury(Self.death(Example.otherSignIn))
        #expect(pending.current == Example.signIn && !pending.knowsAlive(Example.otherSignIn))
        var nothing = KnownSignIns()
        nothing.bury(Self.death())
        #expect(nothing.current == Example.signIn)
    }

    @Test("A sign-in id is 32 lower-case hexadecimal digits, and nothing else")
    func ids() {
        let id = SignInID(high: 0, low: .max)
        #expect(id.text == "0000000000000000ffffffffffffffff" && SignInID(id.text) == id)
        for text in [
            "", "f", id.text + "0", id.text.uppercased(), String(id.text.dropLast()) + "g",
        ] {
            #expect(SignInID(text) == nil)
        }
    }
}
