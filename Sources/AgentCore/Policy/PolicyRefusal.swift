extension AccessPolicy {
    /// What a refused program is told.
    ///
    /// `file` is canopyd.conf's path, and `reload` a command that has it read again; with both, and a
    /// line that can be written in quotes, there is a command to type.
    package func problem(
        _ denial: Denial, of peer: Peer, asking way: Way, for profile: ProfileName, file: String?,
        reload: String
    ) -> Problem {
        var detail = "\(peer.words) may not use profile \(profile): \(denial.words(profile))"
        let line = addition(for: peer, asking: way)
        if let line {
            detail += "; a line \(line) in [policy \(profile)] of canopyd.conf would let it"
        }
        var fix: String?
        if let line, let file, [line, file].allSatisfy(isQuotable) {
            // A line break first: the file's last line may have none.
            fix =
                "printf '\\n%s' '[policy \(profile)]' '\(line)' '' >>'\(file)' && \(reload)"
        }
        return Problem(.forbidden, detail, profile: profile, fix: fix)
    }

    /// The line that would let the peer in; nil if there is none.
    ///
    /// A scope's name is often another each time, so that a program's path comes before it.
    private func addition(for peer: Peer, asking way: Way) -> String? {
        if case .credential(let unit) = way {
            return peer.units.value?.own == unit && UnitName.holdsPrograms(unit)
                ? "AllowUnit=\(unit)" : nil
        }
        let unit = peer.units.value?.own.flatMap { UnitName.holdsPrograms($0) ? $0 : nil }
        var path: String?
        if let executable = peer.executable.value, executable.standing == .inPlace,
            isWritable(executable.path)
        {
            path = executable.path
        }
        if let unit, path == nil || allowExecutables.isEmpty && unit.hasSuffix(".service") {
            return "AllowUnit=\(unit)"
        }
        return path.map { "AllowExecutable=\($0)" }
    }

    /// Whether a line of canopyd.conf can end with the path: blanks do not count there, and a
    /// backslash would have the line go on in the next one.
    private func isWritable(_ path: String) -> Bool {
        !path.utf8.contains { $0 < 0x20 || $0 == 0x7F } && path.last != " " && path.last != "\\"
    }

    private func isQuotable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "'") }
    }
}

extension AccessPolicy.Denial {
    /// Why, in a clause.
    package func words(_ profile: ProfileName) -> String {
        switch self {
        case .noRules: "[policy \(profile)] of canopyd.conf has no rule"
        case .notNamed: "[policy \(profile)] of canopyd.conf does not name it"
        case .notInUnit(let unit): "it asks as \(unit), and is not in that unit"
        case .unknown(let executable, let units):
            switch (executable, units) {
            case (let executable?, let units?) where executable == units:
                "who it is cannot be seen: \(units.words)"
            case (let executable?, let units?):
                "its executable cannot be seen: \(executable.words); nor its unit: \(units.words)"
            case (let executable?, nil): "its executable cannot be seen: \(executable.words)"
            case (nil, let units?): "its unit cannot be seen: \(units.words)"
            case (nil, nil): "who it is cannot be seen"
            }
        }
    }
}

extension Peer {
    /// Who it is, for people: the program, its number and its unit.
    package var words: String {
        let unit = units.value?.own.map { ", unit \($0)" } ?? ""
        return "\(executableWords) (process \(process)\(unit))"
    }

    /// The program's path, or what it calls itself; that proves nothing, and the words say so.
    package var executableWords: String {
        if let executable = executable.value { return executable.words }
        return name.map { "a program that calls itself \($0)" } ?? "an unknown program"
    }
}
