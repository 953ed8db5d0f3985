import Testing

@testable import AgentCore

@Suite("Requests of systemd's LoadCredential=")
struct CredentialRequestTests {
    @Test(
        "The address names unit and credential",
        arguments: [
            ("d9779956dac1dffc", "app.service", "default"),
            ("1", "tmpl@inst-a.service", "work.mail"),
            ("00ff", "a\\x2db.service", "token"), ("1", "a.service", "\u{36D}x"),
        ])
    func named(_ number: String, _ unit: String, _ credential: String) throws {
        let request = try #require(read("\0\(number)/unit/\(unit)/\(credential)"))
        #expect(request.unit == unit)
        #expect(request.credential == credential)
    }

    @Test(
        "A credential is named after its profile, or after canopyd",
        arguments: [
            ("canopy", "default"), ("canopy.work", "work"), ("canopy.canopy", "canopy"),
            ("default", "default"), ("work", "work"), ("work.mail", "work.mail"),
            ("canopyd", "canopyd"), ("canopy-x", "canopy-x"), ("canopy.a.b", "a.b"),
            ("canopy.", nil), ("canopy..x", nil), (".work", nil), ("a b", nil),
        ])
    func profile(_ credential: String, _ profile: String?) throws {
        let request = try #require(read("\01/unit/app.service/\(credential)"))
        #expect(request.profile?.text == profile)
    }

    @Test(
        "An address that is none of systemd's asks for nothing",
        arguments: [
            "", "\0", "\0/unit/a.service/token", "d97/unit/a.service/token",
            "\0d97/unit/a.service", "\0d97/unit/a.service/", "\0d97/unit//token",
            "\0d97/user/a.service/token", "\0d97/unit/a.service/token/more",
            "\0D97/unit/a.service/token", "\0d 7/unit/a.service/token", "/run/user/1/socket",
        ])
    func foreign(_ address: String) {
        #expect(read(address) == nil)
    }

    @Test("Bytes that are no text ask for nothing")
    func noText() {
        #expect(
            CredentialRequest(address: [0] + Array("1/unit/a".utf8) + [0xFF] + Array("/t".utf8))
                == nil)
    }

    private func read(_ address: String) -> CredentialRequest? {
        CredentialRequest(address: Array(address.utf8))
    }
}
