import AgentCore
import Testing

@Suite("The notice that a sign-in is needed, in virtual time")
struct SignInNoticeTests {
    private static let work = Example.profile("work")
    private static let home = Example.profile("home")
    private static let service = ":1.7"

    /// A desktop with a notification service, and what it was asked to do.
    private struct Desktop {
        var notice: SignInNotice
        var owner: String? = SignInNoticeTests.service
        /// What is on the screen, by id.
        var visible: [UInt32: SignInNoticeText] = [:]
        /// Every notice that was shown for the first time, and every one that took its place.
        var shown: [SignInNoticeText] = []
        private(set) var now = Example.moment().boot

        init(_ notice: SignInNotice = SignInNotice()) {
            self.notice = notice
            self.notice.serviceIs(owner)
        }

        /// Time passes, and whatever is due is done.
        mutating func pass(_ seconds: Double) {
            let end = now + Example.span(seconds)
            while let due = notice.wakeUp, due <= end {
                now = max(now, due)
                perform()
            }
            now = end
            perform()
        }

        mutating func see(
            _ profile: ProfileName, _ standing: SignInNotice.Standing
        ) {
            notice.saw(profile, standing, at: now)
            perform()
        }

        mutating func end(_ profile: ProfileName, _ reason: SignInReason = .revokedOrExpired) {
            see(profile, .needed(reason, email: "\(profile)@example.org"))
        }

        mutating func change(owner: String?) {
            self.owner = owner
            visible = [:]
            notice.serviceIs(owner)
            perform()
        }

        /// The user closes what is shown.
        mutating func dismiss() {
            for id in visible.keys { notice.closed(id: id, owner: SignInNoticeTests.service) }
            visible = [:]
            perform()
        }

        private mutating func perform() {
            while true {
                switch notice.step(at: now) {
                case .nothing: return
                case .withdraw(let old):
                    notice.withdrew()
                    visible[old.id] = nil
                case .show(let text, let old):
                    notice.showing(text)
                    guard let owner else {
                        notice.wasAbsent()
                        continue
                    }
                    let id = old.flatMap { visible[$0.id] == nil ? nil : $0.id }
                    let place = id ?? UInt32(shown.count + 1)
                    visible[place] = text
                    shown.append(text)
                    notice.shows(id: place, owner: owner)
                }
            }
        }
    }

    private func profiles(_ text: SignInNoticeText?) -> [String] {
        text?.entries.map(\.profile.text) ?? []
    }

    @Test("H01: two minutes after the end, exactly one; withdrawn when the profile recovers")
    func once() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(119.999)
        #expect(desktop.shown.isEmpty)
        #expect(desktop.notice.wakeUp == desktop.now + Example.span(0.001))
        desktop.pass(0.001)
        #expect(desktop.shown.count == 1)
        #expect(desktop.notice.wakeUp == nil)
        for _ in 1...50 {
            desktop.end(Self.work)
            desktop.pass(3600)
        }
        #expect(desktop.shown.count == 1)
        #expect(desktop.visible.count == 1)
        desktop.see(Self.work, .settled)
        #expect(desktop.visible.isEmpty)
        #expect(!desktop.notice.needsService)
        // The next end is another one.
        desktop.end(Self.work)
        desktop.pass(120)
        #expect(desktop.shown.count == 2)
    }

    @Test("Whoever signs in within the grace is told nothing")
    func early() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(119)
        desktop.see(Self.work, .settled)
        desktop.pass(10_000)
        #expect(desktop.shown.isEmpty)
        #expect(desktop.notice.wakeUp == nil)
    }

    @Test("What was over before a sleep is told at once after it")
    func sleep() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(30)
        // Nobody ran meanwhile: the boot clock did.
        desktop.pass(8 * 3600)
        #expect(desktop.shown.count == 1)
    }

    @Test("A keyring that is read again each minute neither delays the notice nor repeats it")
    func reread() {
        var desktop = Desktop()
        for second in 0..<600 {
            desktop.see(Self.work, .unknown)
            desktop.end(Self.work, .keyringReset)
            desktop.pass(1)
            #expect(desktop.shown.count == (second >= 119 ? 1 : 0), "second \(second)")
        }
    }

    @Test("While it is not known whether a sign-in is over, nothing is said of it")
    func doubtful() {
        var desktop = Desktop()
        desktop.end(Self.work, .keyringReset)
        desktop.pass(60)
        desktop.see(Self.work, .unknown)
        desktop.pass(3600)
        #expect(desktop.shown.isEmpty)
        #expect(desktop.notice.wakeUp == nil)
        desktop.end(Self.work, .keyringReset)
        #expect(desktop.shown.count == 1)
        // And what is shown stays meanwhile.
        desktop.see(Self.work, .unknown)
        desktop.pass(3600)
        #expect(desktop.visible.count == 1)
    }

    @Test("What ends together is one notice; what ends later joins it, and each recovery leaves it")
    func several() {
        var desktop = Desktop()
        desktop.end(Self.work, .keyringReset)
        desktop.pass(10)
        desktop.end(Self.home, .keyringReset)
        desktop.pass(109.9)
        #expect(desktop.shown.isEmpty)
        desktop.pass(0.1)
        #expect(desktop.shown.map(profiles) == [["home", "work"]])
        desktop.end(.standard)
        desktop.pass(120)
        #expect(desktop.visible.values.map(profiles) == [["default", "home", "work"]])
        desktop.see(Self.home, .settled)
        #expect(desktop.visible.values.map(profiles) == [["default", "work"]])
        desktop.see(Self.work, .settled)
        desktop.see(.standard, .settled)
        #expect(desktop.visible.isEmpty)
    }

    @Test("A notice that the user has closed does not come back with another profile's")
    func dismissed() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(120)
        desktop.dismiss()
        desktop.end(Self.home)
        desktop.pass(120)
        #expect(desktop.shown.map(profiles) == [["work"], ["home"]])
        desktop.see(Self.work, .settled)
        #expect(desktop.visible.values.map(profiles) == [["home"]])
    }

    @Test("Without a notification service nothing is due; one that comes is told then, and once")
    func absent() {
        var desktop = Desktop()
        desktop.change(owner: nil)
        desktop.end(Self.work)
        desktop.pass(10_000)
        #expect(desktop.notice.wakeUp == nil)
        #expect(desktop.shown.isEmpty)
        desktop.change(owner: Self.service)
        #expect(desktop.shown.count == 1)
        // Another service has an empty screen, and the user was told.
        desktop.change(owner: ":1.9")
        desktop.pass(10_000)
        #expect(desktop.shown.count == 1)
        #expect(desktop.notice.shown == nil)
    }

    /// One profile's sign-in has ended, and the service is being asked to show what it says.
    private func asked(at due: BootTime) throws -> (notice: SignInNotice, text: SignInNoticeText) {
        var notice = SignInNotice()
        notice.serviceIs(Self.service)
        notice.saw(
            Self.work, .needed(.rotationLost, email: nil), at: Example.moment().boot)
        var text: SignInNoticeText?
        if case .show(let words, nil) = notice.step(at: due) { text = words }
        let shown = try #require(text, "nothing is shown")
        notice.showing(shown)
        return (notice, shown)
    }

    @Test("Only what has changed is news: whoever hears of a thousand profiles looks at them once")
    func sameAgain() {
        let now = Example.moment().boot
        var notice = SignInNotice()
        let lost = SignInNotice.Standing.needed(.rotationLost, email: nil)
        for (standing, isNews) in [
            (.settled, false), (.unknown, false), (lost, true), (lost, false), (.unknown, true),
            (.unknown, false), (lost, true), (.settled, true), (.settled, false),
        ] as [(SignInNotice.Standing, Bool)] {
            #expect(notice.saw(Self.work, standing, at: now) == isNews, "\(standing)")
        }
    }

    @Test("A service that vanishes while it is asked has told nobody")
    func vanished() throws {
        let due = Example.moment().boot + SignInNotice.grace
        let (being, text) = try asked(at: due)
        var notice = being
        #expect(notice.step(at: due) == .nothing)
        #expect(notice.wakeUp == nil)
        notice.wasAbsent()
        #expect(notice.step(at: due) == .nothing)
        notice.serviceIs(":1.8")
        #expect(notice.step(at: due) == .show(text, replacing: nil))
    }

    @Test("A service that refuses, or never answers, is not asked again")
    func refused() throws {
        let late = Example.moment().boot + .seconds(100_000)
        var notice = try asked(at: late).notice
        notice.refused()
        #expect(notice.step(at: late) == .nothing)
        #expect(notice.wakeUp == nil)
    }

    @Test("A sign-in while the desktop is being asked takes the notice back once it is there")
    func overtaken() throws {
        let due = Example.moment().boot + SignInNotice.grace
        var notice = try asked(at: due).notice
        notice.saw(Self.work, .settled, at: due)
        #expect(notice.needsService)
        #expect(notice.step(at: due) == .nothing)
        notice.shows(id: 3, owner: Self.service)
        let shown = SignInNotice.Shown(id: 3, owner: Self.service, profiles: [Self.work])
        #expect(notice.step(at: due) == .withdraw(shown))
        notice.withdrew()
        #expect(!notice.needsService)
    }

    // MARK: Restarts

    private func restarted(_ notice: SignInNotice, boot: BootID = Example.boot) -> SignInNotice {
        guard let record = notice.record(of: Example.boot) else { return SignInNotice() }
        return record.withUnsafeBytes { SignInNotice(recorded: $0, boot: boot) }
    }

    @Test("A restart neither repeats the notice nor starts the grace anew, and can take it back")
    func restart() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(100)
        desktop.notice = restarted(desktop.notice)
        desktop.notice.serviceIs(Self.service)
        desktop.end(Self.work)
        desktop.pass(20)
        #expect(desktop.shown.count == 1)
        desktop.notice = restarted(desktop.notice)
        desktop.notice.serviceIs(Self.service)
        desktop.end(Self.work)
        desktop.pass(10_000)
        #expect(desktop.shown.count == 1)
        desktop.see(Self.work, .settled)
        #expect(desktop.visible.isEmpty)
        #expect(desktop.notice.record(of: Example.boot) == nil)
    }

    @Test("Nothing is due by itself while the rest of what was known before a restart is not read")
    func unread() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.end(Self.home)
        desktop.pass(100)
        desktop.notice = restarted(desktop.notice)
        desktop.notice.serviceIs(Self.service)
        desktop.end(Self.work)
        // A wake-up at which nothing is done would be followed by the next at once.
        #expect(desktop.notice.wakeUp == nil)
        desktop.pass(1000)
        #expect(desktop.shown.isEmpty)
        desktop.end(Self.home)
        #expect(desktop.shown.count == 1)
    }

    @Test("What was over before a restart is read profile by profile, and is one notice")
    func readOneByOne() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.end(Self.home)
        desktop.pass(60)
        desktop.notice = restarted(desktop.notice)
        desktop.notice.serviceIs(Self.service)
        desktop.pass(100)
        desktop.end(Self.work)
        #expect(desktop.shown.isEmpty)
        desktop.end(Self.home)
        #expect(desktop.shown.map(profiles) == [["home", "work"]])
        // One that is gone is not waited for.
        desktop.end(.standard)
        desktop.pass(60)
        desktop.notice = restarted(desktop.notice)
        desktop.notice.serviceIs(Self.service)
        desktop.pass(60)
        desktop.end(.standard)
        desktop.see(Self.work, .settled)
        #expect(desktop.shown.count == 1)
        desktop.notice.sawAll()
        desktop.pass(0)
        #expect(desktop.visible.values.map(profiles) == [["default", "home"]])
    }

    @Test("To another notification service than before the restart an old id means nothing")
    func restartedService() {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(120)
        desktop.notice = restarted(desktop.notice)
        #expect(desktop.notice.shown?.owner == Self.service)
        desktop.change(owner: ":1.9")
        #expect(desktop.notice.shown == nil)
        desktop.see(Self.work, .settled)
        #expect(!desktop.notice.needsService)
    }

    @Test("A record of another boot, of another format, or damaged, says nothing")
    func badRecords() throws {
        var desktop = Desktop()
        desktop.end(Self.work)
        desktop.pass(120)
        #expect(restarted(desktop.notice).needsService)
        #expect(!restarted(desktop.notice, boot: Example.otherBoot).needsService)
        let record = String(
            decoding: try #require(desktop.notice.record(of: Example.boot)), as: UTF8.self)
        for text in [
            "", "{", "[]", record.replacing(#""version":1"#, with: #""version":2"#),
            record.replacing(#""ended":["#, with: #""ended":{"a":["#),
            #"{"version":1,"boot":"\#(Example.boot.text)","ended":[{"profile":"../x","told":true,"#
                + #""since_boot_ns":1}],"shown":{"id":-1,"owner":"x","profiles":["work"]}}"#,
        ] {
            let bytes = Array(text.utf8)
            let notice = bytes.withUnsafeBytes {
                SignInNotice(recorded: $0, boot: Example.boot)
            }
            #expect(!notice.needsService, "\(text)")
        }
    }

    // MARK: Words

    @Test("The body says whose sign-in has ended, why, and the command that mends it")
    func words() {
        let one = SignInNoticeText([
            .init(profile: Self.work, reason: .revokedOrExpired, email: "ada@example.org")
        ])
        #expect(
            one.body(asMarkup: false) == """
                work (ada@example.org): the session was revoked or has expired on the server
                Sign in with: canopyctl login --profile work
                """)
        let standard = SignInNoticeText([.init(profile: .standard, reason: nil, email: nil)])
        #expect(
            standard.body(asMarkup: false) == """
                default: the session has ended
                Sign in with: canopyctl login
                """)
        let many = SignInNoticeText(
            (1...7).map {
                .init(profile: Example.profile("p\($0)"), reason: .keyringReset, email: nil)
            })
        let lines = many.body(asMarkup: false).split(separator: "\n")
        #expect(lines.count == Limits.noticeProfiles + 1)
        #expect(lines[0] == "p1: canopyctl login --profile p1")
        #expect(lines.last == "and 2 more: canopyctl status")
    }

    @Test("An address that is markup, a command to the screen, or endless, is none of it")
    func hostileWords() {
        func body(_ email: String, asMarkup: Bool = true) -> String {
            SignInNoticeText([.init(profile: Self.work, reason: nil, email: email)])
                .body(asMarkup: asMarkup)
        }
        let hostile = "<a href=\"http://evil\">a&b</a>'\n\u{202E}\u{1B}[31m@x"
        #expect(
            body(hostile).hasPrefix(
                "work (&lt;a href=&quot;http://evil&quot;&gt;a&amp;b&lt;/a&gt;&apos; ??[31m@x): "))
        #expect(
            body(hostile, asMarkup: false).contains(
                "<a href=\"http://evil\">a&b</a>' ??[31m@x"))
        #expect(body(hostile).split(separator: "\n").count == 2)
        let endless = body(String(repeating: "é", count: 100_000))
        #expect(endless.count < Limits.noticeEmailCharacters + 200)
        #expect(endless.contains("é…)"))
    }
}
