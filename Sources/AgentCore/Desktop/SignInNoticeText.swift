/// What a notice says: whose sign-in has ended, why, and the command that mends it.
package struct SignInNoticeText: Equatable, Sendable {
    /// One profile in it.
    package struct Entry: Equatable, Sendable {
        package let profile: ProfileName
        package let reason: SignInReason?
        package let email: String?

        package init(profile: ProfileName, reason: SignInReason?, email: String?) {
            self.profile = profile
            self.reason = reason
            self.email = email
        }
    }

    package let entries: [Entry]

    package init(_ entries: [Entry]) {
        self.entries = entries
    }

    /// The title.
    package let summary = "Canopy sign-in needed"

    /// The text below it; `asMarkup` for a service that takes the body for markup
    /// (https://specifications.freedesktop.org/notification-spec, "Markup").
    package func body(asMarkup: Bool) -> String {
        let text = lines.joined(separator: "\n")
        return asMarkup ? SignInNoticeText.escaped(text) : text
    }

    private var lines: [String] {
        if entries.count == 1, let entry = entries.first {
            let name = SignInNoticeText.name(entry)
            let why = entry.reason.map { ": " + Refusals.signInRequired($0, entry.profile).detail }
            return [
                name + (why ?? ": the session has ended"),
                "Sign in with: " + Refusals.signingIn(entry.profile),
            ]
        }
        var lines = entries.prefix(Limits.noticeProfiles).map { entry in
            "\(SignInNoticeText.name(entry)): \(Refusals.signingIn(entry.profile))"
        }
        let others = entries.count - lines.count
        if others > 0 { lines.append("and \(others) more: canopyctl status") }
        return lines
    }

    /// The profile, and whose it is; the address is a server's word, and not trusted to be one.
    private static func name(_ entry: Entry) -> String {
        guard let email = entry.email, !email.isEmpty else { return entry.profile.text }
        var words = Plain.line(email)
        if words.unicodeScalars.count > Limits.noticeEmailCharacters {
            words = String(words.unicodeScalars.prefix(Limits.noticeEmailCharacters)) + "…"
        }
        return "\(entry.profile.text) (\(words))"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&apos;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
