import Testing

@testable import AgentCore

@Suite("What is remembered of who had a token")
struct GrantLedgerTests {
    private static func program(_ path: String, unit: String? = nil) throws -> GrantLedger.Program {
        let group = unit.map { "0::/system.slice/\($0)\n" } ?? "0::/\n"
        return GrantLedger.Program(
            Peer(
                process: 1, user: 1,
                executable: .known(
                    Executable(
                        path: path, file: Executable.File(device: 1, inode: 1), standing: .inPlace)),
                units: .known(try #require(UnitMembership(controlGroups: Array(group.utf8))))))
    }

    private static func generation(_ number: Int64) throws -> Generation {
        Generation(
            signIn: try #require(SignInID("00112233445566778899aabbccddeeff")), number: number)
    }

    @Test("A program is told of once in a generation, by its path and its unit")
    func once() throws {
        var ledger = GrantLedger()
        let git = try Self.program("/usr/bin/git")
        let first = try Self.generation(1)
        #expect(ledger.isFirst(git, of: first) == true)
        #expect(ledger.isFirst(git, of: first) == false)
        #expect(ledger.isFirst(try Self.program("/usr/bin/curl"), of: first) == true)
        #expect(
            ledger.isFirst(try Self.program("/usr/bin/git", unit: "a.service"), of: first) == true)
        #expect(ledger.isFirst(git, of: first) == false)
        #expect(ledger.isFirst(git, of: try Self.generation(2)) == true)
        #expect(ledger.isFirst(git, of: try Self.generation(2)) == false)
    }

    @Test("A thousand programs cost no more room than there is")
    func bounded() throws {
        var ledger = GrantLedger()
        let generation = try Self.generation(1)
        for number in 0..<Limits.grantedPrograms {
            #expect(ledger.isFirst(try Self.program("/\(number)"), of: generation) == true)
        }
        // It begins anew, and tells of one twice rather than of none.
        #expect(ledger.isFirst(try Self.program("/0"), of: generation) == true)
        #expect(ledger.isFirst(try Self.program("/0"), of: generation) == false)
    }

    @Test("A process is remembered for a second, for one clearance, and no other is")
    func recent() {
        var recent = RecentCallers()
        let now = BootTime(nanoseconds: 5_000_000_000)
        #expect(!recent.contains(7, 1, at: now))
        recent.note(7, 1, at: now)
        #expect(recent.contains(7, 1, at: now + .milliseconds(999)))
        #expect(!recent.contains(7, 1, at: now + .seconds(1)))
        #expect(!recent.contains(7, 2, at: now))
        #expect(!recent.contains(8, 1, at: now))
        let rival = 7 + Int32(Limits.recentCallers)
        recent.note(rival, 1, at: now)
        #expect(recent.contains(rival, 1, at: now))
        #expect(!recent.contains(7, 1, at: now))
        // One without a number is everybody.
        recent.note(0, 1, at: now)
        #expect(!recent.contains(0, 1, at: now))
    }
}
