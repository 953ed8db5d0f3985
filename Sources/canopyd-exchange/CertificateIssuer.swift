internal import AgentCore
internal import CCurl
internal import LinuxSystem

/// Who issued a server's certificate: what a user needs to know of one that is not trusted, and what
/// libcurl does not say.
enum CertificateIssuer {
    /// How long asking may take: it is for the words alone.
    private static let patience = TimeSpan.seconds(5)

    /// Makes a connection of its own, without trust: nothing is sent on it, and nothing but the
    /// certificate read.
    ///
    /// nil if there is no telling.
    static func ask(_ url: String, proxy: String?) -> String? {
        guard let handle = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(handle) }
        _ = ccurl_set_string(handle, CURLOPT_URL, url)
        _ = ccurl_set_string(handle, CURLOPT_PROTOCOLS_STR, "https")
        _ = ccurl_set_string(handle, CURLOPT_PROXY, proxy ?? "")
        _ = ccurl_set_long(handle, CURLOPT_CONNECT_ONLY, 1)
        _ = ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        _ = ccurl_set_long(handle, CURLOPT_QUICK_EXIT, 1)
        _ = ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, Int(patience.milliseconds))
        _ = ccurl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 0)
        _ = ccurl_set_long(handle, CURLOPT_SSL_VERIFYHOST, 0)
        _ = ccurl_set_long(handle, CURLOPT_CERTINFO, 1)
        guard curl_easy_perform(handle) == CURLE_OK,
            let issuer = ccurl_certificate_field(handle, "Issuer")
        else { return nil }
        let name = CanopyClient.printable(String(cString: issuer))
        return name.isEmpty ? nil : String(name.prefix(Limits.shownIssuerCharacters))
    }
}
