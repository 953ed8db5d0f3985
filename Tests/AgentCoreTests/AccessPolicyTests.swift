import Testing

@testable import AgentCore

@Suite("Who may use a profile's session")
struct AccessPolicyTests {
    private static let git = Executable.File(device: 8, inode: 100)
    private static let other = Executable.File(device: 8, inode: 200)

    /// What stands where: links are followed already.
    private static func file(_ path: String) -> Executable.File? {
        ["/usr/bin/git": git, "/link/to/git": git, "/usr/bin/other": other][path]
    }

    private static func policy(
        units: [String] = [], executables: [String] = []
    ) -> AccessPolicy {
        var policy = AccessPolicy()
        policy.allowUnits = units
        policy.allowExecutables = executables
        return policy
    }

    private static func membership(_ path: String) throws -> UnitMembership {
        try #require(UnitMembership(controlGroups: Array("0::\(path)\n".utf8)))
    }

    private static func peer(
        _ file: Executable.File = git, _ path: String = "/usr/bin/git",
        standing: Executable.Standing = .inPlace, group: String = "/system.slice/backup.service"
    ) throws -> Peer {
        Peer(
            process: 42, user: 1000,
            executable: .known(Executable(path: path, file: file, standing: standing)),
            units: .known(try membership(group)))
    }

    private static func denial(
        _ policy: AccessPolicy, _ peer: Peer, asking way: AccessPolicy.Way = .request
    ) -> AccessPolicy.Denial? {
        policy.denial(of: peer, asking: way, file: file)
    }

    @Test("One rule that names a program is enough, of either kind")
    func oneIsEnough() throws {
        let peer = try Self.peer()
        #expect(Self.denial(Self.policy(units: ["backup.service"]), peer) == nil)
        #expect(Self.denial(Self.policy(executables: ["/usr/bin/git"]), peer) == nil)
        #expect(
            Self.denial(
                Self.policy(units: ["x.service"], executables: ["/usr/bin/other", "/usr/bin/git"]),
                peer) == nil)
        #expect(
            Self.denial(
                Self.policy(units: ["x.service", "backup.service"], executables: ["/none"]), peer)
                == nil)
        #expect(
            Self.denial(Self.policy(units: ["x.service"], executables: ["/none"]), peer)
                == .notNamed)
    }

    @Test("A section without rules lets nobody in")
    func noRules() throws {
        #expect(Self.denial(Self.policy(), try Self.peer()) == .noRules)
    }

    @Test("A program is its file: links lead to it, and a path alone is nothing")
    func files() throws {
        let policy = Self.policy(executables: ["/link/to/git"])
        #expect(Self.denial(policy, try Self.peer()) == nil)
        // As a mount namespace can show it.
        let forged = try Self.peer(Self.other, "/usr/bin/git", standing: .elsewhere)
        #expect(Self.denial(Self.policy(executables: ["/usr/bin/git"]), forged) == .notNamed)
        let removed = try Self.peer(
            Executable.File(device: 8, inode: 7), "/usr/bin/git", standing: .removed)
        #expect(Self.denial(Self.policy(executables: ["/usr/bin/git"]), removed) == .notNamed)
        // Neither is a path that leads nowhere.
        #expect(Self.denial(Self.policy(executables: ["/none"]), forged) == .notNamed)
    }

    @Test("A user's unit counts by its own name, and by its manager's")
    func userUnits() throws {
        let peer = try Self.peer(
            group: "/user.slice/user-1.slice/user@1.service/app.slice/mail.service")
        #expect(Self.denial(Self.policy(units: ["mail.service"]), peer) == nil)
        #expect(Self.denial(Self.policy(units: ["user@1.service"]), peer) == nil)
        #expect(Self.denial(Self.policy(units: ["mail.scope"]), peer) == .notNamed)
    }

    @Test("A template names its instances, and an instance itself alone")
    func templates() throws {
        let peer = try Self.peer(group: "/system.slice/system-report.slice/report@a.b.service")
        #expect(Self.denial(Self.policy(units: ["report@.service"]), peer) == nil)
        #expect(Self.denial(Self.policy(units: ["report@a.b.service"]), peer) == nil)
        for other in ["report@c.service", "report.service", "report@.scope", "rep@.service"] {
            #expect(Self.denial(Self.policy(units: [other]), peer) == .notNamed, "\(other)")
        }
        let plain = try Self.peer(group: "/system.slice/report.service")
        #expect(Self.denial(Self.policy(units: ["report@.service"]), plain) == .notNamed)
    }

    @Test(
        "Of whom nothing is known is refused wherever a rule needs it",
        arguments: [
            .outside, .ended, .replaced, .hidden, .forbidden, .unreadable("why"), .noControlGroup,
        ] as [Peer.Obscurity])
    func unknown(reason: Peer.Obscurity) {
        let peer = Peer(process: 0, user: 1000, unknown: reason)
        #expect(
            Self.denial(Self.policy(units: ["a.service"]), peer)
                == .unknown(executable: nil, units: reason))
        #expect(
            Self.denial(Self.policy(executables: ["/usr/bin/git"]), peer)
                == .unknown(executable: reason, units: nil))
        #expect(
            Self.denial(Self.policy(units: ["a.service"], executables: ["/usr/bin/git"]), peer)
                == .unknown(executable: reason, units: reason))
        #expect(Self.denial(Self.policy(), peer) == .noRules)
    }

    @Test("What is known lets in, whatever else is not")
    func halfKnown() throws {
        let unit = Peer(
            process: 42, user: 1000, executable: .unknown(.forbidden),
            units: .known(try Self.membership("/system.slice/backup.service")))
        let both = Self.policy(units: ["backup.service"], executables: ["/usr/bin/git"])
        #expect(Self.denial(both, unit) == nil)
        let other = Self.policy(units: ["x.service"], executables: ["/usr/bin/git"])
        #expect(
            Self.denial(other, unit) == .unknown(executable: .forbidden, units: nil))
        #expect(Self.denial(Self.policy(units: ["x.service"]), unit) == .notNamed)
    }

    @Test("A credential is its unit's: named, and asked for from within it")
    func credentials() throws {
        let peer = try Self.peer()
        let policy = Self.policy(units: ["backup.service"], executables: ["/usr/bin/git"])
        #expect(
            Self.denial(policy, peer, asking: .credential(unit: "backup.service")) == nil)
        // A name that anybody can write does not count.
        let elsewhere = try Self.peer(group: "/system.slice/build.service")
        #expect(
            Self.denial(policy, elsewhere, asking: .credential(unit: "backup.service"))
                == .notInUnit("backup.service"))
        // Nor does what systemd's own program is, before the unit's is started.
        #expect(
            Self.denial(
                Self.policy(executables: ["/usr/bin/git"]), peer,
                asking: .credential(unit: "backup.service")) == .notNamed)
        let hidden = Peer(process: 42, user: 1000, unknown: .hidden)
        #expect(
            Self.denial(policy, hidden, asking: .credential(unit: "backup.service"))
                == .unknown(executable: nil, units: .hidden))
        // A unit of the user's manager is not that manager.
        let inner = try Self.peer(
            group: "/user.slice/user-1.slice/user@1.service/app.slice/mail.service")
        #expect(
            Self.denial(
                Self.policy(units: ["user@1.service"]), inner,
                asking: .credential(unit: "user@1.service")) == .notInUnit("user@1.service"))
    }

    // MARK: Words

    private func problem(
        _ policy: AccessPolicy, _ peer: Peer, asking way: AccessPolicy.Way = .request,
        file: String? = "/home/a b/canopyd.conf"
    ) throws -> Problem {
        let denial = try #require(Self.denial(policy, peer, asking: way))
        return policy.problem(
            denial, of: peer, asking: way, for: .standard, file: file, reload: "kill -HUP 7")
    }

    @Test("Who is refused is told who it is, why, and the line that would let it in")
    func words() throws {
        let refusal = try problem(Self.policy(executables: ["/usr/bin/other"]), try Self.peer())
        #expect(refusal.code == .forbidden)
        #expect(refusal.profile == .standard)
        #expect(
            refusal.detail
                == "/usr/bin/git (process 42, unit backup.service) may not use profile default: "
                + "[policy default] of canopyd.conf does not name it; a line "
                + "AllowExecutable=/usr/bin/git in [policy default] of canopyd.conf would let it")
        #expect(
            refusal.fix
                == "printf '\\n%s' '[policy default]' 'AllowExecutable=/usr/bin/git' '' "
                + ">>'/home/a b/canopyd.conf' && kill -HUP 7")
        let unit = try problem(Self.policy(units: ["x.service"]), try Self.peer())
        #expect(unit.detail.contains("a line AllowUnit=backup.service in"))
        let credential = try problem(
            Self.policy(units: ["x.service"]), try Self.peer(),
            asking: .credential(unit: "backup.service"))
        #expect(credential.detail.contains("a line AllowUnit=backup.service in"))
    }

    @Test("No line is offered that would not help, and no command that could do something else")
    func noFix() throws {
        let elsewhere = try Self.peer(Self.other, "/usr/bin/git", standing: .elsewhere, group: "/")
        let forged = try problem(Self.policy(executables: ["/usr/bin/git"]), elsewhere)
        #expect(forged.fix == nil)
        #expect(forged.detail.contains("/usr/bin/git (of another mount namespace)"))
        let scope = try Self.peer(group: "/user.slice/user-1.slice/session-2.scope")
        #expect(
            try problem(Self.policy(units: ["x.service"]), scope).detail.contains(
                "AllowExecutable=/usr/bin/git"))
        let quoting = try Self.peer(Self.other, "/a'; rm -r '/b", group: "/")
        #expect(try problem(Self.policy(executables: ["/x"]), quoting).fix == nil)
        // Nor does a line of canopyd.conf end with these, or have them in it.
        for path in ["/opt/a ", "/opt/a\\", "/opt/a\nb"] {
            let unwritable = try problem(
                Self.policy(executables: ["/x"]), try Self.peer(Self.other, path, group: "/"))
            #expect(unwritable.fix == nil)
            #expect(!unwritable.detail.contains("a line"))
        }
        #expect(
            try problem(Self.policy(executables: ["/x"]), try Self.peer(), file: nil).fix == nil)
        let notThere = try problem(
            Self.policy(units: ["a.service"]), try Self.peer(),
            asking: .credential(unit: "a.service"))
        #expect(notThere.fix == nil)
        #expect(notThere.detail.contains("it asks as a.service, and is not in that unit"))
    }

    @Test("A program that cannot be looked at is called what it calls itself, and no more")
    func names() throws {
        let peer = Peer(
            process: 42, user: 1000, executable: .unknown(.forbidden), units: .unknown(.ended),
            name: "curl")
        #expect(peer.words == "a program that calls itself curl (process 42)")
        #expect(
            Peer(process: 0, user: 1, unknown: .outside).words == "an unknown program (process 0)")
    }
}
