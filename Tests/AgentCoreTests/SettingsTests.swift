import AgentCore
import Testing

@Suite("canopyd.conf is read as systemd would read it")
struct SettingsTests {
    @Test(
        "Without a statement the defaults are in force",
        arguments: ["", "\n\n", "# a\n ; b\n", "\u{FEFF}", "[network]\n[profile a]"])
    func defaults(_ text: String) {
        let parsed = parse(text)
        #expect(parsed.errors.isEmpty)
        #expect(parsed.warnings.isEmpty)
        var settings = parsed.settings
        settings.profiles = [:]
        #expect(settings == Settings())
        #expect(settings.rotationMode == .ahead)
        #expect(settings.logLevel == .info)
        #expect(settings.connections == 16384)
        #expect(settings.caFile == nil && settings.proxy == nil && settings.policies.isEmpty)
    }

    @Test("Every key is read")
    func everything() throws {
        let parsed = parse(
            """
            \u{FEFF}# A whole file.
            [network]
            CAFile=/etc/ssl/corp ca.pem
              Proxy = http://Proxy.corp:3128/ \t
            [rotation]
            Mode=on-demand
            [log]
            Level=debug
            [limits]
            Connections=64
            [profile default]
            URL=https://auth.example.org/
            PublishableKey=pk_live_1=2
            ; A comment.
            [profile   work.2]
            Mode=ahead
            [policy work.2]
            AllowUnit=a.service b@1.scope
            AllowUnit=app-x\\x2dy.scope
            AllowExecutable=/usr/bin/git
            AllowExecutable=/opt/a b/c
            [profile default]
            Mode=on-demand
            """)
        #expect(parsed.errors.isEmpty)
        #expect(parsed.warnings.isEmpty)
        let settings = parsed.settings
        #expect(settings.caFile == "/etc/ssl/corp ca.pem")
        #expect(settings.proxy?.text == "http://proxy.corp:3128")
        #expect(settings.rotationMode == .onDemand)
        #expect(settings.logLevel == .debug)
        #expect(settings.connections == 64)
        let work = try ProfileName("work.2")
        #expect(settings.profiles.count == 2)
        #expect(settings.profiles[.standard]?.url?.text == "https://auth.example.org")
        #expect(settings.profiles[.standard]?.publishableKey == "pk_live_1=2")
        #expect(settings.profiles[.standard]?.mode == .onDemand)
        #expect(settings.mode(of: work) == .ahead)
        #expect(settings.mode(of: try ProfileName("other")) == .onDemand)
        #expect(
            settings.policies[work]?.allowUnits
                == ["a.service", "b@1.scope", "app-x\\x2dy.scope"])
        #expect(settings.policies[work]?.allowExecutables == ["/usr/bin/git", "/opt/a b/c"])
    }

    @Test(
        "Lines end and go on as in systemd's files",
        arguments: [
            "[policy default]\r\nAllowUnit=a.service\r\nAllowUnit=b.service\r\n",
            "[policy default]\nAllowUnit=a.service \\\n  b.service",
            "[policy default]\nAllowUnit=a.service \\\n# a comment \\\n;another\n\tb.service\n",
            "[policy default]\nAllowUnit=\\\na.service\\\nb.service\\",
            "[policy default]\nAllow\\\nUnit=x\nAllowUnit=a.service b.service",
            "[policy \\\n default]\n# no continuation \\\nAllowUnit=a.service\tb.service",
            "[policy default]\nAllowUnit=c.service\nAllowUnit=\nAllowUnit=a.service b.service",
        ]) func lines(_ text: String)
    {
        let parsed = parse(text)
        #expect(parsed.errors.isEmpty)
        #expect(parsed.settings.policies[.standard]?.allowUnits == ["a.service", "b.service"])
    }

    @Test("A path is its bytes, whatever characters they make")
    func marks() {
        let parsed = parse(
            "[policy default]\nAllowExecutable=/\u{36D}a/\u{301}b\n[network]\nCAFile=/\u{301}ca\n")
        #expect(parsed.errors.isEmpty)
        #expect(parsed.settings.policies[.standard]?.allowExecutables == ["/\u{36D}a/\u{301}b"])
        #expect(parse("[policy default]\nAllowExecutable=/a/\u{301}/../b").errors.count == 1)
    }

    @Test("A policy that names nobody is a warning that names its line, and is in force")
    func emptyPolicy() throws {
        let parsed = parse(
            "[policy work]\n# AllowUnit=a.service\n[policy default]\nAllowUnit=a.service\n"
                + "[policy late]\nAllowExecutable=/a\nAllowExecutable=\n[policy late]\n")
        #expect(parsed.errors.isEmpty)
        #expect(parsed.warnings.map(\.line) == [1, 5])
        #expect(
            parsed.warnings.map(\.text).allSatisfy {
                $0.contains("names no program, so that none may use the profile's session")
            })
        #expect(parsed.settings.policies[try ProfileName("work")] == AccessPolicy())
        #expect(parsed.settings.policies[try ProfileName("late")] == AccessPolicy())
        #expect(parsed.settings.executablesAllowed.isEmpty)
    }

    @Test("The last assignment counts, and an empty one is the default again")
    func repeated() {
        #expect(parse("[limits]\nConnections=1\nConnections=2").settings.connections == 2)
        #expect(
            parse(
                "[limits]\nConnections=1\nConnections=\n[network]\nCAFile=/a\nCAFile=\n[profile default]\nMode=ahead\nMode="
            ).settings.profiles[.standard] == Settings.Profile())
        let reset = parse("[limits]\nConnections=1\nConnections= \n[network]\nCAFile=/a\nCAFile=")
        #expect(reset.settings == Settings())
    }

    @Test(
        "What is not known is a warning that names the line",
        arguments: [
            ("Mode=ahead", 1, "Mode= stands before the first section"),
            ("[rotation]\n\nmode=ahead", 3, "mode= is not known"),
            ("[rotation]\nLevel=info", 2, "the keys of this section are Mode="),
            ("[network]\nproxy=http://a:1", 2, "CAFile= and Proxy="),
            ("[log]\na=", 2, "Level="), ("[limits]\na=", 2, "Connections="),
            ("[profile a]\nKey=b", 2, "PublishableKey="),
            ("[policy a]\nKey=b\nAllowUnit=a.service", 2, "AllowUnit="),
            ("\n[Network]\nCAFile=relative", 2, "[Network] is not known"),
            ("[]\n", 1, "[] is not known"), ("[profiles a]", 1, "[profile NAME]"),
            ("[network x]", 1, "[network x] is not known"),
        ]) func warned(_ text: String, _ line: Int, _ part: String)
    {
        let parsed = parse(text)
        #expect(parsed.errors.isEmpty)
        #expect(parsed.warnings.map(\.line) == [line])
        #expect(parsed.warnings.first?.text.contains(part) == true)
    }

    @Test("What starts with X- is another program's")
    func extensions() {
        let parsed = parse("[X-Other]\nMode=never\n[rotation]\nX-Note=a")
        #expect(parsed == Settings.Parsed())
    }

    @Test(
        "A value that is not allowed is an error that names line, value and what is allowed",
        arguments: [
            ("[network]\nCAFile=ca.pem", 2, "CAFile=\"ca.pem\"", "absolute"),
            ("[network]\nProxy=proxy", 2, "Proxy=\"proxy\"", "http://HOST:PORT"),
            ("[network]\nProxy=http://proxy", 2, "Proxy=\"http://proxy\"", "http://HOST:PORT"),
            ("[network]\nProxy=socks5://a:1", 2, "\"socks5://a:1\"", "http://HOST:PORT"),
            ("[network]\nProxy=http://a:1/x", 2, "\"http://a:1/x\"", "without user and path"),
            ("[rotation]\nMode=Ahead", 2, "Mode=\"Ahead\"", "ahead, on-demand"),
            ("[log]\nLevel=loud", 2, "Level=\"loud\"", "error, warning, info, debug"),
            ("[limits]\nConnections=0", 2, "Connections=\"0\"", "from 1 to 1048576"),
            ("[limits]\nConnections=-1", 2, "\"-1\"", "from 1 to 1048576"),
            ("[limits]\nConnections=+1", 2, "\"+1\"", "from 1 to 1048576"),
            ("[limits]\nConnections=1e3", 2, "\"1e3\"", "from 1 to 1048576"),
            ("[limits]\nConnections=99999999999999999999", 2, "9999\"", "from 1 to 1048576"),
            ("[profile a]\nURL=http://a.example", 2, "URL=\"http://a.example\"", "https://"),
            ("[profile a]\nPublishableKey=a b", 2, "\"a b\"", "without spaces"),
            ("[profile a]\nMode=never", 2, "Mode=\"never\"", "ahead, on-demand"),
            ("[policy a]\nAllowUnit=ssh", 2, "AllowUnit=\"ssh\"", "NAME.service"),
            ("[policy a]\nAllowUnit=a.service b/c.service", 2, "b/c.service", "NAME.scope"),
            ("[policy a]\nAllowExecutable=git", 2, "\"git\"", "absolute path"),
            ("[policy a]\nAllowExecutable=/usr/../bin/git", 2, "/usr/../bin/git", "/../"),
            ("[policy a]\nAllowExecutable=/usr/bin/", 2, "\"/usr/bin/\"", "at its end"),
            ("\n[profile]\nURL=nonsense", 2, "[profile]", "1 to 64 characters"),
            ("[profile .a]", 1, "[profile .a]", "does not start with . or -"),
            ("[profile a b]", 1, "[profile a b]", "not allowed"),
            ("[policy a/b]", 1, "[policy a/b]", "not allowed"),
            ("[log]\nLevel", 2, "no Key=Value", "#"), ("[log\nLevel=a", 1, "end with ]", ""),
            ("=a", 1, "no key", ""), ("[log]\nLevel=a\u{1}", 2, "control character", ""),
            ("[log] # x", 1, "end with ]", ""),
            ("[log]\n\n\\\nLevel=\\\nloud", 3, "Level=\"loud\"", "error"),
        ]) func refused(_ text: String, _ line: Int, _ value: String, _ allowed: String)
    {
        let parsed = parse(text)
        let first = parsed.errors.first
        #expect(first?.line == line)
        #expect(first?.text.contains(value) == true)
        #expect(allowed.isEmpty || first?.text.contains(allowed) == true)
        #expect(first?.description.hasPrefix("test.conf:\(line): ") == true)
    }

    @Test("All errors are told, and what is right beside them is read")
    func allErrors() {
        let parsed = parse(
            "[log]\nLevel=a\nLevel=error\n[limits\n[rotation]\nMode=b\n[x]\n[network]\nCAFile=c\n")
        #expect(parsed.errors.map(\.line) == [2, 4, 6, 9])
        #expect(parsed.warnings.map(\.line) == [7])
        #expect(parsed.settings.logLevel == .error)
    }

    @Test("A password in a URL is refused without being repeated")
    func password() {
        for text in [
            "[network]\nProxy=http://user:hunter2@proxy:3128",
            "[profile a]\nURL=https://user:hunter2@example.org",
        ] {
            let errors = parse(text).errors
            #expect(errors.count == 1)
            #expect(!"\(errors)".contains("hunter2"))
        }
    }

    @Test("What a remark repeats of the file is printable, and not endless")
    func printableRemarks() {
        let accents = "e" + String(repeating: "\u{301}", count: 10_000)
        let parsed = parse("[a\tb\u{9b}31m]\n[log]\n\(accents)=1\nLevel=\u{9b}2J\(accents)\n")
        #expect(parsed.warnings.count == 2 && parsed.errors.count == 1)
        for remark in parsed.warnings + parsed.errors {
            #expect(remark.text.utf8.count < 500)
            #expect(
                remark.text.unicodeScalars.allSatisfy {
                    $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value)
                })
        }
    }

    @Test("Bytes that are not UTF-8 are an error in their line alone")
    func notUTF8() {
        let parsed = parse(Array("[log]\nLevel=".utf8) + [0xFF] + Array("\nLevel=debug".utf8))
        #expect(parsed.errors.map(\.line) == [2])
        #expect(parsed.settings.logLevel == .debug)
    }

    @Test("A file beyond the limit is refused unread")
    func tooLarge() {
        let comment = [UInt8](repeating: UInt8(ascii: "#"), count: Limits.configurationBytes)
        #expect(parse(comment).errors.isEmpty)
        #expect(parse(comment + [10]).errors.map(\.line) == [1])
    }

    @Test("A file of nothing but continuations is read in one go")
    func longLine() {
        let text = String(repeating: "\\\n", count: Limits.configurationBytes / 16)
        #expect(parse(text) == Settings.Parsed())
    }

    @Test("No bytes crash the parser, and every remark names a line of them", arguments: 1...8)
    func walk(_ seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        let whole = Array(
            """
            [network]
            CAFile=/a
            Proxy=http://a:1
            # b \\
            [profile default]
            URL=https://a.b:1/c \\
            Mode=ahead
            [policy x]
            AllowUnit=a.service
            AllowExecutable=/b
            [limits]
            Connections=5
            """.utf8)
        for round in 0..<1500 {
            var bytes = chance.mutated(whole)
            if round % 8 == 0 {
                bytes = (0..<200).map { _ in .random(in: .min ... .max, using: &chance) }
            }
            let lines = bytes.count { $0 == UInt8(ascii: "\n") } + 1
            let parsed = parse(bytes)
            for remark in parsed.errors + parsed.warnings {
                #expect((1...lines).contains(remark.line))
            }
            #expect((1...Limits.connectionsMaximum).contains(parsed.settings.connections))
        }
    }

    private func parse(_ text: String) -> Settings.Parsed {
        parse(Array(text.utf8))
    }

    private func parse(_ bytes: [UInt8]) -> Settings.Parsed {
        withExactCopy(of: bytes) { Settings.parse($0, file: "test.conf") }
    }
}
