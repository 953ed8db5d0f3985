/// Where an HTTP proxy is that opens tunnels (CONNECT): `http://HOST:PORT`.
package struct ProxyURL: Hashable, Sendable, CustomStringConvertible {
    /// The URL without a slash at its end.
    package let text: String

    package var description: String { text }

    /// A text is no proxy's URL.
    package struct Malformed: Error, Equatable, Sendable, CustomStringConvertible {
        /// What is allowed; the port has no default, because programs disagree about it.
        package var description: String { "a proxy is http://HOST:PORT, without user and path" }
    }

    package init(_ text: String) throws(Malformed) {
        let scheme = "http://"
        guard text.prefix(scheme.count).lowercased() == scheme,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Malformed() }
        var authority = text.dropFirst(scheme.count)
        if authority.last == "/" { authority.removeLast() }
        do throws(BaseURL.Malformed) {
            let (host, port) = try BaseURL.split(authority)
            guard !port.isEmpty else { throw .badPort }
            self.text = scheme + host.lowercased() + port
        } catch {
            throw Malformed()
        }
    }
}
