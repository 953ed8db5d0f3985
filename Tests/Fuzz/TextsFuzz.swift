/// The small texts: names, URLs, dates, addresses, tokens.
enum TextsFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        let text = bytes.text
        if let name = try? ProfileName(text) {
            law(name.text == text && text.utf8.count <= Limits.profileNameBytes, "a name is one")
            law(!text.contains("/") && text != "..", "a name is no path")
        }
        if let url = try? BaseURL(text) {
            law((try? BaseURL(url.text)) == url, "a URL's text is that URL")
            law(url.text.hasPrefix("https://") || url.isPlain, "a URL has a scheme")
        }
        if let proxy = try? ProxyURL(text) {
            law((try? ProxyURL(proxy.text)) == proxy, "a proxy's text is that proxy")
        }
        if let time = Timestamp.http(text) { checkDate(time) }
        if let time = Timestamp.wallTime(rfc3339: text) { checkDate(time) }
        _ = JWTClaims(Secret(copying: bytes, in: .ordinary), in: .ordinary)?.lifetime
        _ = CredentialRequest(address: bytes)
        let continuation = Secret(copying: bytes, in: .ordinary)
        _ = SignInContinuation(continuation, in: .ordinary)
        _ = try? SecondFactorAnswer(parsing: continuation, in: .ordinary)
        _ = try? Credentials(parsing: continuation, in: .ordinary)
        if let id = SignInID(text) { law(id.text == text, "an id is its text") }
    }

    /// A time of a year with four digits is written so that it is read again.
    private static func checkDate(_ time: WallTime) {
        let text = Timestamp.rfc3339(time)
        let read = Timestamp.wallTime(rfc3339: text)
        law(read.map { $0.seconds == time.seconds } ?? false, "a date is what was written: \(text)")
    }
}
