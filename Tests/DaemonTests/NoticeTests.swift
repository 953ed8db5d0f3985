import Foundation
import Glibc
import Testing

@Suite("The desktop's notice that a sign-in is needed", .timeLimit(.minutes(25)))
struct NoticeTests {
    /// A desktop where sign-ins end, and where the boot clock can be ahead.
    private struct Scene {
        let desktop: PrivateDesktop
        let stage: Stage

        init() throws {
            desktop = try PrivateDesktop()
            stage = try Stage(on: desktop)
        }

        /// What canopyd knows of the notice after a restart; nil for nothing.
        func record() -> String? {
            FileManager.default.contents(atPath: desktop.directory.path + "/canopyd/notice.json")
                .map { String(decoding: $0, as: UTF8.self) }
        }

        /// Waits until canopyd has noted that a notice is on the desktop, or that none is: the service
        /// has written down a call before canopyd has the answer to it, and who is killed in between
        /// never learns how the notice is called.
        func awaitRecord(ofNotice isShown: Bool) throws {
            try eventually("it is noted that a notice is shown: \(isShown)") {
                record()?.contains("\"shown\"") ?? false == isShown
            }
        }

        /// The server ends every session of the person, and canopyd learns of it, and notes when.
        func end(_ profiles: String..., of person: SandboxServer.Person = .ada) throws {
            try stage.server.revokeSessions(of: person)
            for profile in profiles {
                try eventually("the end is known") {
                    try stage.refresh(profile).code == "signin_required"
                }
                try eventually("it is noted") {
                    record()?.contains("\"\(profile)\"") == true
                }
            }
        }

        /// canopyd is restarted so many seconds later, by the boot clock.
        func restart(after seconds: Int) throws {
            try stage.killDaemon()
            let later = try Namespaces(in: desktop.directory, asleep: seconds)
            stage.wrapper = later.clockEntrance()
            try stage.startDaemon()
            try withExtendedLifetime(later) {
                try eventually("it has read the keyring") {
                    try stage.state() == "signin_required"
                }
            }
            namespaces.append(later)
        }

        private let namespaces = Kept()

        private final class Kept {
            private var all: [Namespaces] = []
            func append(_ one: Namespaces) { all.append(one) }
        }
    }

    @Test("H01: after two minutes of signin_required one notice, with the command, until sign-in")
    func shownAndWithdrawn() throws {
        let scene = try Scene()
        let service = try NotificationDouble(on: scene.desktop)
        let stage = scene.stage
        try stage.logIn()
        try stage.logIn("work")
        try scene.end("default", "work")
        #expect(try service.names() == [])
        try scene.restart(after: 100)
        #expect(try service.names() == [])
        // The rest of the grace passes by the clock.
        try scene.restart(after: 117)
        try eventually("the notice is there") { try !service.calls().isEmpty }
        try scene.awaitRecord(ofNotice: true)
        let notice = try #require(try service.calls().first)
        #expect(notice.call == "Notify")
        #expect(notice.application == "canopyd")
        #expect(notice.summary == "Canopy sign-in needed")
        let email = SandboxServer.Person.ada.email
        #expect(
            notice.body == """
                default (\(email)): canopyctl login
                work (\(email)): canopyctl login --profile work
                """)
        #expect(notice.icon == "dialog-password")
        #expect(notice.actions == 0 && notice.timeout == 0 && notice.urgency == 1)
        // Neither another restart nor hours repeat it.
        try scene.restart(after: 10_000)
        try stage.killAndRestart()
        try eventually("it is known again") { try stage.state("work") == "signin_required" }
        #expect(try service.names() == ["Notify"])
        // What recovers is taken out, and what is left stays.
        try stage.logIn("work")
        try eventually("the notice is another") { try service.names().count == 2 }
        let rest = try service.calls()[1]
        #expect(rest.call == "Replace" && rest.id == notice.id)
        #expect(
            rest.body == """
                default (\(email)): the session was revoked or has expired on the server
                Sign in with: canopyctl login
                """)
        try stage.logIn()
        try eventually("the notice is gone") { try service.names().count == 3 }
        let last = try service.calls()[2]
        #expect(last.call == "Close" && last.id == notice.id)
        #expect(!stage.daemon.words.contains("notice"))
        try eventually("nothing is left to note") { scene.record() == nil }
    }

    @Test("A notice that the user has closed stays closed, and a sign-out takes back the other")
    func dismissedAndSignedOut() throws {
        let scene = try Scene()
        let service = try NotificationDouble(on: scene.desktop, capabilities: ["body"])
        let stage = scene.stage
        try stage.logIn()
        try scene.end("default")
        try scene.restart(after: 120)
        try eventually("the notice is there") { try service.names() == ["Notify"] }
        try scene.awaitRecord(ofNotice: true)
        try service.dismiss()
        try scene.awaitRecord(ofNotice: false)
        try stage.logIn("work", as: .grace)
        try scene.end("work", of: .grace)
        try scene.restart(after: 120 + 200)
        try eventually("the other notice is there") { try service.calls().count == 2 }
        let second = try service.calls()[1]
        #expect(second.call == "Notify")
        #expect(second.body?.contains("--profile work") == true)
        #expect(second.body?.contains("default") == false)
        let signOut = try stage.ask("POST", "/v1/profiles/work/logout?local=1")
        #expect(signOut.status == 204)
        try eventually("the notice is gone") { try service.names().count == 3 }
        #expect(try service.calls()[2].call == "Close")
    }

    @Test("A user's own sign-out, and what mends itself, cause none")
    func none() throws {
        let scene = try Scene()
        let service = try NotificationDouble(on: scene.desktop)
        let stage = scene.stage
        try stage.logIn()
        try stage.logIn("work", as: .grace)
        try stage.logIn("home", as: .grace)
        #expect(try stage.ask("POST", "/v1/profiles/home/logout").status == 204)
        // The first keeps failing, and the second's keyring is locked when canopyd comes back.
        try stage.server.plan("status-500", #","count":1000"#)
        try eventually("it fails") { try stage.refresh().code == "server_error" }
        try stage.killDaemon()
        try scene.desktop.lock()
        let later = try Namespaces(in: scene.desktop.directory, asleep: 45 * 60)
        stage.wrapper = later.clockEntrance()
        try stage.startDaemon()
        try eventually("the keyring is locked") { try stage.state("work") == "keyring_locked" }
        try scene.desktop.unlock()
        try eventually("the keyring is open") { try stage.state("work") != "keyring_locked" }
        #expect(try service.names() == [])
        try eventually("nothing is left to note") { scene.record() == nil }
    }

    @Test("Without a service, or a bus, nothing is said; a service that comes is told at once")
    func absent() throws {
        let scene = try Scene()
        let stage = scene.stage
        try stage.logIn()
        try scene.end("default")
        try scene.restart(after: 1000)
        #expect(!stage.daemon.words.contains("notice"))
        let service = try NotificationDouble(on: scene.desktop)
        try eventually("the notice is there") { try service.names() == ["Notify"] }
        // One that takes its place shows nothing, and is not told again.
        try service.stop()
        let other = try NotificationDouble(on: scene.desktop)
        try stage.logIn()
        #expect(try stage.state() != "signin_required")
        #expect(try other.names() == [])
        try stage.killDaemon()
        try scene.desktop.stopBus()
        try stage.startDaemon()
        #expect(try stage.ask("GET", "/v1/status").status == 200)
    }

    @Test("The bus starts no notification service for us")
    func activation() throws {
        let scene = try Scene()
        let stage = scene.stage
        try stage.logIn()
        try scene.end("default")
        // Whatever the bus starts leaves its mark.
        let mark = scene.desktop.directory.path + "/activated"
        try scene.desktop.directory.write(
            "[D-BUS Service]\nName=org.freedesktop.Notifications\nExec=/usr/bin/touch \(mark)\n",
            "services/org.freedesktop.Notifications.service")
        try scene.desktop.stopKeyring()
        try scene.desktop.restartBus(startingKeyringWith: "/bin/false")
        try scene.desktop.startKeyring()
        try scene.restart(after: 1000)
        for _ in 1...3 { _ = try stage.ask("GET", "/v1/status") }
        #expect(access(mark, F_OK) != 0)
        // It would have, had it been asked to.
        let sender = try Program(
            "/usr/bin/dbus-send",
            [
                "--session", "--print-reply", "--dest=org.freedesktop.Notifications",
                "/org/freedesktop/Notifications", "org.freedesktop.Notifications.GetCapabilities",
            ], environment: scene.desktop.environment)
        try sender.end()
        try eventually("the bus starts it for others") { access(mark, F_OK) == 0 }
    }

    @Test("A service that refuses is asked once, and one line says so")
    func refused() throws {
        let scene = try Scene()
        let stage = scene.stage
        try stage.logIn()
        try scene.end("default")
        let service = try NotificationDouble(
            on: scene.desktop, refusing: "org.freedesktop.DBus.Error.AccessDenied")
        try scene.restart(after: 1000)
        try eventually("the refusal is told") { stage.daemon.words.contains("does not show") }
        #expect(stage.daemon.words.contains("error=org.freedesktop.DBus.Error.AccessDenied"))
        try stage.killAndRestart()
        try eventually("it is known again") { try stage.state() == "signin_required" }
        #expect(try service.names() == ["Refused"])
    }
}
