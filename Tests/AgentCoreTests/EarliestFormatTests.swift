import AgentCore
import Testing

/// Bytes as the first version wrote them, which stand here for good: what reads them now was changed since,
/// and what is stored on somebody's machine was not.
@Suite("What the first version stored is read by every later one")
struct EarliestFormatTests {
    /// An item with every member that it can have.
    private static let item = """
        {"version":1,"sign_in":"000000000000000a000000000000000a","generation":7,"refresh_token":"a-7",\
        "url":"https://auth.example.org","publishable_key":"pk_example","identity_id":"id_1",\
        "identity_email":"ada@example.org","signed_in_ms":1776672000000,"anchor_inode":42,\
        "anchor_birth_ns":1700000000000000000,"attempted_ms":1776675603000,\
        "last_rotation":{"boot_id":"99999999-2222-3333-4444-555555555555","boot_ns":995000000000,\
        "wall_ms":1776675595000},\
        "not_before":{"boot_id":"11111111-2222-3333-4444-555555555555","boot_ns":1000000000000,\
        "wall_ms":1776675600000,"span_ns":120000000000},\
        "access_token":"access-7","access_type":"Bearer","access_lifetime_ns":900000000000,\
        "access_expiry_ms":1776676497000,"access_clock_offset_ns":-86400000000000,\
        "access_sent":{"boot_id":"11111111-2222-3333-4444-555555555555","boot_ns":997000000000,\
        "wall_ms":1776675597000}}
        """

    /// The same with the members alone that each one has.
    private static let shortItem = """
        {"version":1,"sign_in":"000000000000000a000000000000000a","generation":0,"refresh_token":"a-0",\
        "url":"https://auth.example.org","publishable_key":"pk_example","identity_id":"id_1",\
        "identity_email":"ada@example.org","signed_in_ms":1776672000000,"anchor_inode":42,\
        "anchor_birth_ns":1700000000000000000}
        """

    private static let state = """
        {"version":1,"file_inode":42,"file_birth_ns":1700000000000000000,\
        "current":"000000000000000a000000000000000a","pending":["000000000000000b000000000000000b"],\
        "marks":{"000000000000000a000000000000000a":7},\
        "dead":[{"sign_in":"00000000000000030000000000000004","generation":3,\
        "reason":"revoked_or_expired","at_ms":1776675600000}],"url":"https://auth.example.org",\
        "identity_id":"id_1","identity_email":"ada@example.org","signed_in_ms":1776672000000}
        """

    private static func session(_ text: String) throws -> StoredSession {
        try Example.secret(text).withBytes { try StoredSession(decoding: $0, in: .ordinary) }
    }

    @Test(
        "H10: the first version's item is read, and the next rotation writes today's"
    )
    func items() throws {
        var whole = Example.session(
            7, lastRotation: Example.stamp(-5, boot: Example.otherBoot),
            notBefore: NotBefore(since: Example.stamp(), span: .seconds(120)),
            access: Example.life(900, sent: -3, expiry: 897, offset: -86_400))
        whole.header.attemptedAt = Example.moment(3).wall
        #expect(try Self.session(Self.item) == whole)
        let short = try Self.session(Self.shortItem)
        #expect(short == Example.session(0, access: nil))
        let world = ScriptedWorld(short)
        _ = try Rotation(in: world, known: nil, mayPresent: true).run()
        let rotated = try #require(world.heldSession)
        #expect(rotated.header.generation == 1 && world.violations.isEmpty)
        let written = try #require(text(rotated.encoded(in: .ordinary)))
        #expect(written.hasPrefix(#"{"version":\#(StoredSession.formatVersion),"#))
    }

    @Test("H10: a slot that the first version filled is read by the one that was installed over it")
    func slot() throws {
        let header: [UInt8] = [
            0x43, 0x4E, 0x50, 0x59, 0, 0, 0x01, 0x2C, 0xAC, 0xC5, 0x15, 0x31, 0x43, 0x80, 0xBE,
            0x32,
        ]
        let bytes = header + Array(Self.shortItem.utf8)
        let contents = bytes.withUnsafeBytes { SlotFormat.read($0, in: .ordinary) }
        guard case .session(let session) = contents else {
            Issue.record("\(contents)")
            return
        }
        #expect(session == Example.session(0, access: nil))
    }

    @Test("H10: a state file of the first version is read whole")
    func states() throws {
        let bytes = Array(Self.state.utf8)
        let known = try bytes.withUnsafeBytes { try KnownSignIns(decoding: $0) }
        #expect(known.current == Example.signIn && known.pending == [Example.otherSignIn])
        #expect(known.marks == [Example.signIn: 7])
        #expect(known.dead.map(\.reason) == [.revokedOrExpired])
        #expect(known.account == Example.header().account)
        #expect(try bytes.withUnsafeBytes { try KnownSignIns.file(decoding: $0) } == Example.anchor)
    }

    @Test(
        "A state file that does not name itself is refused, and taken for no copy and not for ours")
    func nameless() throws {
        let text = Self.state.replacing(
            #""file_inode":42,"file_birth_ns":1700000000000000000,"#, with: "")
        #expect(throws: KnownSignIns.Unreadable.malformed("file_inode")) {
            try Array(text.utf8).withUnsafeBytes { _ = try KnownSignIns.file(decoding: $0) }
        }
    }
}
