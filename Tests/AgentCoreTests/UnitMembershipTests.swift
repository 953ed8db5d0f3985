import Testing

@testable import AgentCore

@Suite("Which units a process is in")
struct UnitMembershipTests {
    private func units(_ text: String) -> UnitMembership? {
        UnitMembership(controlGroups: Array(text.utf8))
    }

    @Test(
        "A unit is the first in the path that is no slice, and a user's the first below the manager",
        arguments: [
            ("/system.slice/backup.service", "backup.service", nil),
            ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", nil),
            ("/system.slice/backup.service/inner/tasks-7", "backup.service", nil),
            ("/init.scope", "init.scope", nil),
            ("/user.slice/user-1000.slice/session-2.scope", "session-2.scope", nil),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/mail.service",
                "user@1000.service", "mail.service"
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-a.slice/"
                    + "app-org.x\\x2dy-12.scope/more",
                "user@1000.service", "app-org.x\\x2dy-12.scope"
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service",
                "init.scope"
            ),
            ("/user.slice/user-1000.slice/user@1000.service", "user@1000.service", nil),
            ("/system.slice/_cpu.service", "cpu.service", nil),
            ("/system.slice/docker-0123abc.scope", "docker-0123abc.scope", nil),
            ("/system.slice/disk.mount", "disk.mount", nil),
        ] as [(String, String?, String?)])
    func path(_ path: String, system: String?, user: String?) throws {
        let found = try #require(units("0::\(path)\n"))
        #expect(found.system == system)
        #expect(found.user == user)
        #expect(found.own == user ?? system)
        #expect(found.names == [user, system].compactMap(\.self))
    }

    @Test(
        "What is not systemd's names nothing, and what stands below it does not either",
        arguments: [
            "/", "/lxc/box/backup.service", "/..", "/../system.slice/backup.service",
            "/system.slice", "/system.slice/backup.service (deleted)", "/system.slice/.service",
            "/system.slice/back up.service", "/docker/0123abc",
        ])
    func foreign(_ path: String) throws {
        let found = try #require(units("0::\(path)\n"))
        #expect(found.names.isEmpty)
    }

    @Test("A unit that makes directories of its own cannot say that it is another")
    func forged() throws {
        let delegated = try #require(
            units("0::/system.slice/build.service/user@0.service/app.slice/backup.service\n"))
        #expect(delegated.names == ["build.service"])
        let nested = try #require(
            units(
                "0::/user.slice/user-1.slice/user@1.service/app.slice/build.service/"
                    + "app.slice/backup.service\n"))
        #expect(nested.names == ["build.service", "user@1.service"])
    }

    @Test(
        "No mark in a name that a process makes swallows what stands before it, or after",
        arguments: ["\u{36D}", "\u{301}x", "x\r", "\u{FE0F}", "\u{200D}"])
    func marks(_ mark: String) throws {
        let below = try #require(units("0::/system.slice/a.service/\(mark)\n"))
        #expect(below.names == ["a.service"])
        let named = try #require(
            units("1:name=systemd:/system.slice/a.service/\(mark)\n0::/\n"))
        #expect(named.names == ["a.service"])
        let other = try #require(units("0::/system.slice/\(mark)/a.service\n"))
        #expect(other.names.isEmpty)
    }

    @Test("On machines of the old kind systemd's own hierarchy counts")
    func legacy() throws {
        let hybrid = try #require(
            units("9:memory:/other.service\n1:name=systemd:/system.slice/a.service\n0::/\n"))
        #expect(hybrid.names == ["a.service"])
        let old = try #require(units("1:name=systemd:/system.slice/b.service\n"))
        #expect(old.names == ["b.service"])
        let new = try #require(
            units("1:name=systemd:/system.slice/a.service\n0::/system.slice/c.service\n"))
        #expect(new.names == ["c.service"])
        #expect(units("9:memory:/system.slice/a.service\n") == nil)
    }

    @Test(
        "What is no such file says nothing",
        arguments: ["", "\n", "0:", "0::", "0::relative/a.service", "x", "0:cpu:/a.service"])
    func malformed(_ text: String) {
        #expect(units(text) == nil)
    }

    @Test("A path with colons in it is one path")
    func colons() throws {
        let found = try #require(units("0::/system.slice/a:b.service\n"))
        #expect(found.names == ["a:b.service"])
    }
}

@Suite("When a process was started")
struct ProcessStartTests {
    private static let rest =
        " S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234567 9 10 11"

    @Test(
        "The start is field 22, whatever the program calls itself",
        arguments: [
            "cat", "a b", ") S 1 1 1", "((", ":-) 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "",
        ])
    func start(name: String) {
        let text = "42 (\(name))\(Self.rest)\n"
        #expect(
            ProcessStart.time(stat: Array(text.utf8))
                == BootTime(nanoseconds: 12_345_670_000_000))
    }

    @Test(
        "What is cut off or no number is no time",
        arguments: [
            "", "42 (cat", "42 (cat) S 1 2", "42 (cat) S 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 x",
            "42 (cat) S 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 -5",
            "42 (cat) S 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9223372036854775807",
        ])
    func malformed(_ text: String) {
        #expect(ProcessStart.time(stat: Array(text.utf8)) == nil)
    }
}
