/// canopyd.conf.
enum SettingsFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        let parsed = Settings.parse(bytes, file: "canopyd.conf")
        law(Settings.parse(bytes, file: "canopyd.conf") == parsed, "parsing twice gives the same")
        let lines = bytes.count { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") } + 1
        for remark in parsed.warnings + parsed.errors {
            law((0...lines).contains(remark.line), "a remark names a line of the file")
            law((1...2000).contains(remark.text.utf8.count), "a remark says something, and ends")
            for scalar in remark.text.unicodeScalars {
                let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
                law(!isControl, "no control character reaches a terminal")
            }
        }
        let settings = parsed.settings
        law((1...Limits.connectionsMaximum).contains(settings.connections), "there is a limit")
        for profile in settings.profiles.values {
            if let url = profile.url {
                law((try? BaseURL(url.text)) == url, "a URL is one")
            }
            if let key = profile.publishableKey {
                law(
                    (1...Limits.publishableKeyBytes).contains(key.utf8.count), "a key has its limit"
                )
            }
        }
        if let proxy = settings.proxy {
            law((try? ProxyURL(proxy.text)) == proxy, "a proxy is one")
        }
        checkComment(after: bytes, parsed)
    }

    /// A comment changes nothing.
    private static func checkComment(
        after bytes: UnsafeRawBufferPointer, _ parsed: Settings.Parsed
    ) {
        let comment = "\n\n# a comment\n"
        guard bytes.count + comment.utf8.count <= Limits.configurationBytes,
            bytes.last != UInt8(ascii: "\\"), bytes.last != UInt8(ascii: "\r")
        else { return }
        var longer = Array(bytes)
        longer += comment.utf8
        longer.withUnsafeBytes {
            law(Settings.parse($0, file: "canopyd.conf") == parsed, "a comment changes nothing")
        }
    }
}
