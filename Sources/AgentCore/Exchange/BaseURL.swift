/// Where a Canopy server is: `https://host[:port][/path]`, or `http://` on this machine itself.
package struct BaseURL: Hashable, Sendable, CustomStringConvertible {
    /// Canopy's own server, where nothing names another.
    package static let standard = "https://auth.canopy-io.com"

    /// The URL without a slash at its end.
    package let text: String

    package var description: String { text }

    /// Whether the server is this machine, where no TLS is asked for.
    package var isPlain: Bool { text.utf8.starts(with: "http:".utf8) }

    /// Why a text is no server's URL.
    package enum Malformed: Error, Equatable, Sendable, CustomStringConvertible {
        case badScheme
        /// Plain HTTP to another machine would send tokens in the clear.
        case plainHTTP
        case badHost
        case badPort
        case badCharacter
        /// User names, queries and fragments have no meaning here.
        case surplus

        package var description: String {
            let rule =
                "a server's URL is https://HOST[:PORT][/PATH], "
                + "or http:// with localhost, 127.x.x.x or [::1]"
            switch self {
            case .badScheme: return "the URL does not start with https://; \(rule)"
            case .plainHTTP: return "the URL is plain http:// to another machine; \(rule)"
            case .badHost: return "the URL has no valid host; \(rule)"
            case .badPort: return "the URL's port is not a number from 1 to 65535; \(rule)"
            case .badCharacter: return "the URL has a character that is not allowed; \(rule)"
            case .surplus: return "the URL has a user, a query or a fragment; \(rule)"
            }
        }
    }

    package init(_ text: String) throws(Malformed) {
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .badCharacter }
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
            throw .badScheme
        }
        let scheme = text[..<colon].lowercased()
        guard scheme == "https" || scheme == "http" else { throw .badScheme }
        var rest = text[colon...].dropFirst(3)
        guard !rest.contains(where: { $0 == "@" || $0 == "?" || $0 == "#" }) else {
            throw .surplus
        }
        guard !rest.contains(where: { "\\\"<>^`{|}".contains($0) }) else { throw .badCharacter }
        while rest.last == "/" { rest.removeLast() }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let (host, port) = try BaseURL.split(rest[..<slash])
        guard scheme == "https" || BaseURL.isLoopback(host) else { throw .plainHTTP }
        self.text = "\(scheme)://\(host.lowercased())\(port)\(rest[slash...])"
    }

    /// The host, and the port with its colon or nothing.
    static func split(
        _ authority: Substring
    ) throws(Malformed) -> (host: Substring, port: Substring) {
        let end: Substring.Index
        if authority.first == "[" {
            guard let bracket = authority.firstIndex(of: "]") else { throw .badHost }
            end = authority.index(after: bracket)
            let address = authority[authority.index(after: authority.startIndex)..<bracket]
            guard address.contains(":"),
                address.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." })
            else { throw .badHost }
        } else {
            end = authority.firstIndex(of: ":") ?? authority.endIndex
            let host = authority[..<end]
            guard let first = host.first, first != "-", first != ".",
                host.utf8.count <= Limits.hostNameBytes,
                host.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "-" || $0 == "." })
            else { throw .badHost }
        }
        let port = authority[end...]
        guard !port.isEmpty else { return (authority[..<end], port) }
        guard port.first == ":", let number = UInt16(port.dropFirst()), number > 0,
            port.dropFirst().allSatisfy(\.isNumber)
        else { throw .badPort }
        return (authority[..<end], port)
    }

    private static func isLoopback(_ host: Substring) -> Bool {
        if host.lowercased() == "localhost" || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}
