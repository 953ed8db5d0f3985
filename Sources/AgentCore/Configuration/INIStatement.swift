/// One statement of an INI file as systemd writes it (systemd.syntax(7)).
///
/// Lines that start with `#` or `;` are comments. A line that ends with a backslash goes on in the
/// next, a space in the backslash's place; comments in between are passed over. Blanks around
/// section names, keys and values do not count.
struct INIStatement: Equatable {
    enum Content: Equatable {
        case section(String)
        case assignment(key: String, value: String)
        case fault(Fault)
    }

    /// Why a line is no statement.
    enum Fault: Equatable, CaseIterable {
        case notUTF8
        case controlCharacter
        case noEquals
        case noKey
        case unendedSection

        var description: StaticString {
            switch self {
            case .notUTF8: "the line is not UTF-8"
            case .controlCharacter: "the line has a control character"
            case .noEquals:
                "the line is no Key=Value, no [section], and no comment that starts with # or ;"
            case .noKey: "there is no key before the ="
            case .unendedSection: "the section's name does not end with ]"
            }
        }
    }

    /// The line where the statement starts, counted from 1.
    let line: Int
    let content: Content

    /// The statements of a file; a byte order mark at its start is passed over, as systemd does.
    static func all(in bytes: UnsafeRawBufferPointer) -> [INIStatement] {
        var statements: [INIStatement] = []
        var started: (line: Int, bytes: [UInt8])?
        func end(_ line: Int, _ bytes: [UInt8]) {
            if let content = content(of: bytes) {
                statements.append(INIStatement(line: line, content: content))
            }
        }
        var position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        var line = 0
        while position < bytes.count {
            line += 1
            let start = position
            while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
            var text = bytes[start..<position]
            position += 1
            if text.last == UInt8(ascii: "\r") { text.removeLast() }
            let first = text.first { !ASCII.isBlank($0) }
            if first == UInt8(ascii: "#") || first == UInt8(ascii: ";") { continue }
            // Of two backslashes the second is escaped by the first.
            let goesOn = text.reversed().prefix { $0 == UInt8(ascii: "\\") }.count % 2 == 1
            var whole = started ?? (line, [])
            // Else the bytes were copied once for each line of a long statement.
            started = nil
            whole.bytes += goesOn ? text.dropLast() : text
            if goesOn {
                whole.bytes.append(UInt8(ascii: " "))
                started = whole
            } else {
                end(whole.line, whole.bytes)
            }
        }
        if let started { end(started.line, started.bytes) }
        return statements
    }

    /// What a whole line says; nil if it is blank.
    private static func content(of bytes: [UInt8]) -> Content? {
        let text = trimmed(bytes[...])
        guard let first = text.first else { return nil }
        guard String(validating: text, as: UTF8.self) != nil else { return .fault(.notUTF8) }
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }) else {
            return .fault(.controlCharacter)
        }
        if first == UInt8(ascii: "[") {
            guard text.count >= 2, text.last == UInt8(ascii: "]") else {
                return .fault(.unendedSection)
            }
            return .section(string(text.dropFirst().dropLast()))
        }
        guard let sign = text.firstIndex(of: UInt8(ascii: "=")) else { return .fault(.noEquals) }
        let key = string(text[..<sign])
        guard !key.isEmpty else { return .fault(.noKey) }
        return .assignment(key: key, value: string(text[(sign + 1)...]))
    }

    private static func string(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: trimmed(bytes), as: UTF8.self)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while let first = bytes.first, ASCII.isBlank(first) { bytes.removeFirst() }
        while let last = bytes.last, ASCII.isBlank(last) { bytes.removeLast() }
        return bytes
    }
}
