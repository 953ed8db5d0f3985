import AgentCore
import Testing

@Suite("A server's URL is https, or this machine")
struct BaseURLTests {
    @Test(
        "What is allowed, and how it is kept",
        arguments: [
            ("https://auth.canopy-io.com", "https://auth.canopy-io.com"),
            ("https://auth.canopy-io.com/", "https://auth.canopy-io.com"),
            ("HTTPS://Auth.Canopy-IO.com/Path//", "https://auth.canopy-io.com/Path"),
            ("https://host:8443/a/b%20c", "https://host:8443/a/b%20c"),
            ("https://[2001:db8::1]:443", "https://[2001:db8::1]:443"),
            ("https://192.0.2.7", "https://192.0.2.7"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("http://LOCALHOST/x", "http://localhost/x"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("http://127.255.255.254:1", "http://127.255.255.254:1"),
            ("http://[::1]:9", "http://[::1]:9"),
        ]) func allowed(_ text: String, _ kept: String) throws
    {
        let url = try BaseURL(text)
        #expect(url.text == kept)
        #expect(try BaseURL(kept) == url)
    }

    @Test(
        "What is refused, and why",
        arguments: [
            ("", .badScheme), ("auth.canopy-io.com", .badScheme), ("ftp://host", .badScheme),
            ("https:host", .badScheme), ("://host", .badScheme), ("host://https://", .badScheme),
            ("http://host", .plainHTTP), ("http://128.0.0.1", .plainHTTP),
            ("http://127.0.0.1.example.org", .plainHTTP), ("http://127.1", .plainHTTP),
            ("http://localhost.example.org", .plainHTTP), ("http://[::2]", .plainHTTP),
            ("http://127.0.0.256", .plainHTTP), ("http://0.0.0.0", .plainHTTP),
            ("https://", .badHost), ("https:///path", .badHost), ("https://:443", .badHost),
            ("https://-a", .badHost), ("https://a_b", .badHost), ("https://[::1", .badHost),
            ("https://[localhost]", .badHost), ("https://[]", .badHost),
            ("https://host:", .badPort), ("https://host:0", .badPort),
            ("https://host:65536", .badPort), ("https://host:+80", .badPort),
            ("https://host:80:80", .badPort), ("https://[::1]x", .badPort),
            ("https://user@host", .surplus), ("https://u:p@host", .surplus),
            ("https://host?a", .surplus), ("https://host/#a", .surplus),
            ("https://ho st", .badCharacter), ("https://h\u{F6}st", .badCharacter),
            ("https://host/\u{0}", .badCharacter), ("https://host\n", .badCharacter),
            ("https://host/{a}", .badCharacter), ("https://host\\", .badCharacter),
        ] as [(String, BaseURL.Malformed)])
    func refused(_ text: String, _ why: BaseURL.Malformed) {
        #expect(throws: why) { try BaseURL(text) }
        #expect(why.description.contains("https://HOST[:PORT][/PATH]"))
    }
}
