import AgentCore
import Testing

@Suite("A login's body is taken apart, or it is said what is wrong with it")
struct CredentialsTests {
    private func parsed(_ body: String) throws -> Credentials {
        try Credentials(parsing: Example.secret(body), in: .ordinary)
    }

    @Test("Server and key may be left to the configuration")
    func parsed() throws {
        let bare = try parsed(#"{"email":"a@b","password":"p\u00e4ss"}"#)
        #expect(bare.email == "a@b" && bare.baseURL == nil && bare.publishableKey == nil)
        #expect(text(bare.password) == "päss")
        let full = try parsed(
            #"{"url":"https://x","publishable_key":"pk_1","email":"a","password":"p","more":1}"#)
        #expect(full.baseURL == "https://x" && full.publishableKey == "pk_1")
        let null = try parsed(
            #"{"url":null,"publishable_key":null,"email":"a","password":"p"}"#)
        #expect(null.baseURL == nil && null.publishableKey == nil)
    }

    @Test(
        "What is missing or no text is named, and no default takes its place",
        arguments: [
            ("", .notAnObject), ("[]", .notAnObject), ("7", .notAnObject),
            (#"{"email":"a","password":"p""#, .notAnObject),
            ("{}", .missing(.email)), (#"{"password":"p"}"#, .missing(.email)),
            (#"{"email":"","password":"p"}"#, .missing(.email)),
            (#"{"email":7,"password":"p"}"#, .missing(.email)),
            (#"{"email":"a"}"#, .missing(.password)),
            (#"{"email":"a","password":""}"#, .missing(.password)),
            (#"{"email":"a","password":["p"]}"#, .missing(.password)),
            (#"{"email":"a","password":"p","url":7}"#, .missing(.url)),
            (#"{"email":"a","password":"p","url":""}"#, .missing(.url)),
            (#"{"email":"a","password":"p","publishable_key":{}}"#, .missing(.publishableKey)),
        ] as [(String, Credentials.Malformed)])
    func malformed(_ body: String, _ why: Credentials.Malformed) {
        #expect(throws: why) { try parsed(body) }
        if case .missing(let member) = why {
            #expect(why.description.contains("\"\(member.rawValue)\""))
        }
        #expect(!why.description.isEmpty)
    }
}
