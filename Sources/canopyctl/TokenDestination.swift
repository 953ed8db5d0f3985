internal import AgentCore

/// A server that another program means to send a token to, by its URL.
///
/// In the clear a token may not leave this machine, whatever the program is set up to do.
struct TokenDestination {
    let url: String

    /// Whether a token may travel there.
    var isSafe: Bool { url.prefix(8).lowercased() == "https://" || staysHere }

    /// Whether it is plain HTTP to this machine itself.
    var staysHere: Bool {
        // Programs differ in where a user name ends, behind which another host may stand.
        guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://"),
            !url.contains("@")
        else { return false }
        let authority = url[colon...].dropFirst(3).prefix { !"/?#".contains($0) }
        do throws(BaseURL.Malformed) {
            return try BaseURL("\(url[..<colon])://\(authority)").isPlain
        } catch {
            return false
        }
    }

    /// Fails unless a token may travel there.
    func check() throws(Complaint) {
        guard isSafe else {
            throw Complaint(
                .failure, "no token is given for \(url), where it would travel unencrypted",
                cure: "use an https:// URL")
        }
    }
}
