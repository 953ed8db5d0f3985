/// What canopyd.conf says, with its defaults filled in (INTERFACE, "canopyd.conf").
package struct Settings: Equatable, Sendable {
    /// An extra trust root: an absolute path.
    package var caFile: String?
    package var proxy: ProxyURL?

    /// When to rotate the profiles that do not say.
    package var rotationMode = RotationMachine.Mode.ahead
    package var logLevel = LogLevel.info

    /// Connections of one user at a time, 1 to ``Limits/connectionsMaximum``.
    package var connections = Limits.connections
    package var profiles: [ProfileName: Profile] = [:]

    /// Who may use the sessions of the profiles that are named here; of the others, everybody.
    package var policies: [ProfileName: AccessPolicy] = [:]

    /// The defaults.
    package init() {}

    /// What login and rotation use where the command line is silent.
    package struct Profile: Equatable, Sendable {
        package var url: BaseURL?
        package var publishableKey: String?
        package var mode: RotationMachine.Mode?

        package init() {}
    }

    /// When to rotate the profile.
    package func mode(of profile: ProfileName) -> RotationMachine.Mode {
        profiles[profile]?.mode ?? rotationMode
    }

    /// Each program that a policy names, and the profile that it may use, in order.
    package var executablesAllowed: [(profile: ProfileName, path: String)] {
        policies.sorted { $0.key < $1.key }.flatMap { profile, policy in
            policy.allowExecutables.map { (profile, $0) }
        }
    }

    /// What somebody should know about one line of the file.
    package struct Remark: Equatable, Sendable, CustomStringConvertible {
        package let file: String

        /// Counted from 1.
        package let line: Int
        package let text: String

        /// `FILE:LINE: what is wrong`, as compilers write it.
        package var description: String { "\(file):\(line): \(text)" }
    }

    /// The remarks as they are shown: of very many the first, and how many more there are.
    package static func lines(_ remarks: [Remark]) -> [String] {
        let lines = remarks.prefix(Limits.configurationRemarks).map(\.description)
        let rest = remarks.count - lines.count
        return rest > 0 ? lines + ["\(remarks[0].file): \(rest) more lines are like that"] : lines
    }

    /// A file, read to its end whatever is wrong with it.
    package struct Parsed: Equatable, Sendable {
        /// Complete only without errors; with one, what was in force stays in force.
        package var settings = Settings()

        /// Sections and keys that mean nothing to this version.
        package var warnings: [Remark] = []

        /// All values that are not allowed and lines that cannot be read.
        package var errors: [Remark] = []

        /// Of an empty file.
        package init() {}
    }

    /// Parses the whole file; `file` is its name in the remarks.
    package static func parse(_ bytes: UnsafeRawBufferPointer, file: String) -> Parsed {
        var pass = SettingsPass(file: file)
        guard bytes.count <= Limits.configurationBytes else {
            pass.refuse(
                "the file has more than \(Limits.configurationBytes) bytes, and a configuration has "
                    + "some hundreds: another file is meant")
            return pass.parsed
        }
        if let nul = bytes.firstIndex(of: 0) {
            pass.refuseWhole(
                at: bytes[..<nul].count { $0 == UInt8(ascii: "\n") } + 1,
                "the line has a NUL byte, which no text in UTF-8 has: the file is damaged, in "
                    + "UTF-16, or another one is meant")
            return pass.parsed
        }
        for statement in INIStatement.all(in: bytes) {
            pass.take(statement)
        }
        pass.end()
        return pass.parsed
    }
}

/// The pass over the statements of a file.
private struct SettingsPass {
    private enum Section {
        /// Before the first section.
        case none
        case network, rotation, log, limits
        case profile(ProfileName)
        case policy(ProfileName)
        /// Unknown or refused, and that was said: what is in it is passed over.
        case ignored
    }

    private(set) var parsed = Settings.Parsed()
    private let file: String
    private var line = 1
    private var section = Section.none

    /// Where each policy begins.
    private var policyLines: [ProfileName: Int] = [:]

    init(file: String) {
        self.file = file
    }

    mutating func take(_ statement: INIStatement) {
        line = statement.line
        switch statement.content {
        case .section(let name): section = begin(name)
        case .assignment(let key, let value): assign(key, value)
        case .fault(let fault): refuse("\(fault.description)")
        }
    }

    /// Says what only the whole file shows.
    mutating func end() {
        for (name, start) in policyLines.sorted(by: { $0.value < $1.value }) {
            guard let policy = parsed.settings.policies[name], policy.allowUnits.isEmpty,
                policy.allowExecutables.isEmpty
            else { continue }
            line = start
            warn(
                "[policy \(name)] names no program, so that none may use the profile's session; "
                    + "without the section every program of this user may")
        }
    }

    /// Refuses the file for what one line of it has.
    mutating func refuseWhole(at line: Int, _ text: String) {
        self.line = line
        refuse(text)
    }

    mutating func refuse(_ text: String) {
        parsed.errors.append(Settings.Remark(file: file, line: line, text: text))
    }

    private mutating func warn(_ text: String) {
        parsed.warnings.append(Settings.Remark(file: file, line: line, text: text))
    }

    // MARK: Sections

    private mutating func begin(_ header: String) -> Section {
        switch header {
        case "network": return .network
        case "rotation": return .rotation
        case "log": return .log
        case "limits": return .limits
        default: break
        }
        // systemd leaves names that start with X- to other programs.
        if header.hasPrefix("X-") { return .ignored }
        let kind = header.prefix { $0 != " " && $0 != "\t" }
        guard kind == "profile" || kind == "policy" else {
            warn(
                "[\(shown(header))] is not known and passed over; the sections are [network], "
                    + "[rotation], [log], [limits], [profile NAME] and [policy NAME]")
            return .ignored
        }
        let name: ProfileName
        do throws(ProfileName.Malformed) {
            let rest = header[kind.endIndex...]
            name = try ProfileName(String(rest.drop { $0 == " " || $0 == "\t" }))
        } catch {
            refuse("[\(shown(header))]: \(error)")
            return .ignored
        }
        if kind == "profile" {
            if parsed.settings.profiles[name] == nil {
                parsed.settings.profiles[name] = Settings.Profile()
            }
            return .profile(name)
        }
        if parsed.settings.policies[name] == nil {
            parsed.settings.policies[name] = AccessPolicy()
            policyLines[name] = line
        }
        return .policy(name)
    }

    // MARK: Keys

    private mutating func assign(_ key: String, _ value: String) {
        switch section {
        case .none:
            warn("\(shown(key))= stands before the first section and is passed over")
        case .network:
            switch key {
            case "CAFile": set(\.caFile, key, value, or: nil, SettingsPass.path)
            case "Proxy": set(\.proxy, key, value, or: nil, SettingsPass.proxy)
            default: passOver(key, known: "CAFile= and Proxy=")
            }
        case .rotation:
            switch key {
            case "Mode": set(\.rotationMode, key, value, or: .ahead, SettingsPass.choice)
            default: passOver(key, known: "Mode=")
            }
        case .log:
            switch key {
            case "Level": set(\.logLevel, key, value, or: .info, SettingsPass.choice)
            default: passOver(key, known: "Level=")
            }
        case .limits:
            switch key {
            case "Connections":
                set(
                    \.connections, key, value, or: Limits.connections, SettingsPass.connections)
            default: passOver(key, known: "Connections=")
            }
        case .profile(let name):
            var profile = parsed.settings.profiles[name] ?? Settings.Profile()
            switch key {
            case "URL": set(&profile.url, key, value, or: nil, SettingsPass.url)
            case "PublishableKey":
                set(&profile.publishableKey, key, value, or: nil, SettingsPass.publishableKey)
            case "Mode": set(&profile.mode, key, value, or: nil, SettingsPass.choice)
            default: passOver(key, known: "URL=, PublishableKey= and Mode=")
            }
            parsed.settings.profiles[name] = profile
        case .policy(let name):
            var policy = parsed.settings.policies[name] ?? AccessPolicy()
            switch key {
            case "AllowUnit":
                add(to: &policy.allowUnits, key, value, SettingsPass.units)
            case "AllowExecutable":
                add(to: &policy.allowExecutables, key, value, SettingsPass.executable)
            default: passOver(key, known: "AllowUnit= and AllowExecutable=")
            }
            parsed.settings.policies[name] = policy
        case .ignored:
            break
        }
    }

    private mutating func passOver(_ key: String, known: StaticString) {
        if key.hasPrefix("X-") { return }
        warn("\(shown(key))= is not known and passed over; the keys of this section are \(known)")
    }

    /// What is wrong with a value, and what is allowed.
    private struct BadValue: Error {
        let text: String
    }

    /// Sets what `value` says; an empty one sets the default, as everywhere in systemd's files.
    private mutating func set<Value>(
        _ target: inout Value, _ key: String, _ value: String, or standard: Value,
        _ parse: (String) throws(BadValue) -> Value
    ) {
        guard !value.isEmpty else {
            target = standard
            return
        }
        do throws(BadValue) {
            target = try parse(value)
        } catch {
            refuse(key, value, error)
        }
    }

    private mutating func set<Value>(
        _ path: WritableKeyPath<Settings, Value>, _ key: String, _ value: String,
        or standard: Value, _ parse: (String) throws(BadValue) -> Value
    ) {
        var target = parsed.settings[keyPath: path]
        set(&target, key, value, or: standard, parse)
        parsed.settings[keyPath: path] = target
    }

    /// Adds what `value` says; an empty one takes away what was said before.
    private mutating func add(
        to list: inout [String], _ key: String, _ value: String,
        _ parse: (String) throws(BadValue) -> [String]
    ) {
        guard !value.isEmpty else {
            list = []
            return
        }
        do throws(BadValue) {
            list += try parse(value)
        } catch {
            refuse(key, value, error)
        }
    }

    private mutating func refuse(_ key: String, _ value: String, _ bad: BadValue) {
        // What stands before an @ may be a password.
        let shownValue = value.contains("@") && key != "AllowUnit" ? "…" : "\"\(shown(value))\""
        refuse("\(key)=\(shownValue): \(bad.text)")
    }

    /// What a remark repeats of the file: no control characters, C1 included, and not endless, which
    /// one character with a thousand accents would be.
    private func shown(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars.prefix(Limits.shownConfigurationCharacters) {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            shown.unicodeScalars.append(isControl ? " " : scalar)
        }
        let isWhole = text.unicodeScalars.count <= Limits.shownConfigurationCharacters
        return isWhole ? shown : shown + "…"
    }

    // MARK: Values

    private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ value: String
    ) throws(BadValue) -> Choice {
        guard let choice = Choice(rawValue: value) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw BadValue(text: "allowed are \(names)")
        }
        return choice
    }

    private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ value: String
    ) throws(BadValue) -> Choice? {
        let choice: Choice = try choice(value)
        return choice
    }

    private static func path(_ value: String) throws(BadValue) -> String? {
        guard value.utf8.first == UInt8(ascii: "/") else {
            throw BadValue(text: "the path has to be absolute, that is, to start with /")
        }
        return value
    }

    private static func proxy(_ value: String) throws(BadValue) -> ProxyURL? {
        do throws(ProxyURL.Malformed) {
            return try ProxyURL(value)
        } catch {
            throw BadValue(text: "\(error)")
        }
    }

    private static func url(_ value: String) throws(BadValue) -> BaseURL? {
        do throws(BaseURL.Malformed) {
            return try BaseURL(value)
        } catch {
            throw BadValue(text: "\(error)")
        }
    }

    private static func connections(_ value: String) throws(BadValue) -> Int {
        guard value.utf8.allSatisfy(ASCII.isDigit), let number = Int(value),
            (1...Limits.connectionsMaximum).contains(number)
        else {
            throw BadValue(
                text: "allowed is a whole number from 1 to \(Limits.connectionsMaximum)")
        }
        return number
    }

    private static func publishableKey(_ value: String) throws(BadValue) -> String? {
        guard value.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            value.utf8.count <= Limits.publishableKeyBytes
        else {
            throw BadValue(
                text: "a publishable key is at most \(Limits.publishableKeyBytes) letters, digits "
                    + "and signs without spaces")
        }
        return value
    }

    /// Several units may stand in one line.
    private static func units(_ value: String) throws(BadValue) -> [String] {
        let names = value.split { $0 == " " || $0 == "\t" }.map(String.init)
        for name in names {
            guard UnitName.holdsPrograms(name) else {
                throw BadValue(
                    text:
                        "allowed are full names of units, NAME.service or NAME.scope, of letters, "
                        + "digits and : - _ . \\ @, with spaces between several")
            }
        }
        return names
    }

    private static func executable(_ value: String) throws(BadValue) -> [String] {
        // The kernel tells the path without these; nothing would ever match.
        // Bytes, not characters: a mark after a slash would make one character with it.
        let parts = Array(value.utf8).split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count > 1, parts[0].isEmpty,
            parts.dropFirst().allSatisfy({ part in
                !part.isEmpty && !part.elementsEqual(".".utf8) && !part.elementsEqual("..".utf8)
            })
        else {
            throw BadValue(
                text:
                    "allowed is the absolute path of one program, without //, /./, /../ and a / at "
                    + "its end")
        }
        return [value]
    }
}
