internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// The options and operands of one command, as getopt_long found them.
struct Arguments {
    private let command: String
    /// Each option once, with its value or an empty text.
    ///
    /// No dictionary: making its type would take a third of the time of `canopyctl token`.
    private var values: [(option: Option, text: String)] = []

    /// What is no option, in order.
    private(set) var operands: [String] = []

    /// How many elements of the argument vector were read, the command's own name included.
    private(set) var consumed = 0

    /// Reads `count` elements at `vector`, of which the first is the command's name.
    ///
    /// With `stopsAtOperand` the first operand ends the options, else options may follow
    /// operands, as everywhere in GNU; `--` ends them in any case.
    init(
        _ command: String, _ vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
        count: Int32, options: [Option], stopsAtOperand: Bool = false
    ) throws(Complaint) {
        self.command = command
        // `:` makes getopt tell a missing value from an unknown option.
        var letters = stopsAtOperand ? "+:" : ":"
        for option in options {
            guard let letter = option.letter else { continue }
            letters.unicodeScalars.append(letter)
            if option.value != nil { letters += ":" }
        }
        var table = options.map { option in
            // A StaticString is NUL-terminated and never freed.
            UnsafeRawPointer(option.name.utf8Start).withMemoryRebound(
                to: CChar.self, capacity: option.name.utf8CodeUnitCount + 1
            ) { name in
                CLinux.option(
                    name: name, has_arg: option.value == nil ? 0 : 1, flag: nil,
                    val: Self.base + option.rawValue)
            }
        }
        table.append(CLinux.option())
        clinux_restart_options()
        while true {
            let found = getopt_long(count, vector, letters, table, nil)
            if found == -1 { break }
            let option = options.first { option in
                found == Self.base + option.rawValue
                    || option.letter.map { Int32($0.value) } == found
            }
            guard let option else {
                throw mistake(found, in: vector, options: options)
            }
            values.removeAll { $0.option == option }
            values.append((option, clinux_optarg().map { String(cString: $0) } ?? ""))
        }
        consumed = Int(clinux_optind())
        for index in Int(clinux_optind())..<max(Int(count), Int(clinux_optind())) {
            if let text = vector[index] { operands.append(String(cString: text)) }
        }
    }

    /// Above every letter.
    private static let base: Int32 = 0x110000

    private func mistake(
        _ found: Int32, in vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
        options: [Option]
    ) -> Complaint {
        let code = clinux_optopt()
        let known = options.first {
            Self.base + $0.rawValue == code || $0.letter.map { Int32($0.value) } == code
        }
        let name: String
        if let known {
            name = "--\(known.name)"
        } else if code != 0, let letter = Unicode.Scalar(UInt32(bitPattern: code)) {
            name = "-\(letter)"
        } else {
            // Only what is before the `=`: behind it may be a secret in the wrong place.
            let text = vector[Int(clinux_optind()) - 1].map { String(cString: $0) } ?? ""
            name = String(text.prefix { $0 != "=" })
        }
        if let known, known == .password || known == .code { return secretAsArgument(known) }
        if found == Int32(UInt8(ascii: ":")) {
            return usage("the option \(name) needs a value")
        }
        if known != nil { return usage("the option \(name) takes no value") }
        return usage("there is no option \(name)")
    }

    /// A usage mistake of this command.
    func usage(_ what: String, cure: String? = nil) -> Complaint {
        .usage(what, cure: cure, command: command == "canopyctl" ? nil : command)
    }

    private func secretAsArgument(_ option: Option) -> Complaint {
        usage(
            "a \(option.name) is not taken as an argument, where other programs could read it",
            cure: "type it when asked, or use --\(option.name)-stdin")
    }

    /// The option's value; nil if it is not there.
    private func given(_ option: Option) -> String? {
        values.first { $0.option == option }?.text
    }

    /// Whether the option is there.
    subscript(flag option: Option) -> Bool { given(option) != nil }

    /// The option's value, else that of the variable that stands in for it.
    subscript(option: Option) -> String? {
        given(option) ?? option.variable.flatMap { Environment.process[$0] }
    }

    /// Refuses fewer operands than `least`, and nothing else of what is another program's.
    func check(operandsFrom least: Int, named names: String) throws(Complaint) {
        guard operands.count >= least else { throw usage("\(names) are missing") }
    }

    /// Refuses secrets among the options, and operands beyond `count`.
    func check(operands count: Int, named names: String = "") throws(Complaint) {
        for option in [Option.password, .code] where self[flag: option] {
            throw secretAsArgument(option)
        }
        guard operands.count <= count else {
            // Not repeated: it may be a password in the wrong place.
            throw usage(
                count == 0
                    ? "\(command) takes options only, no other arguments"
                    : "\(command) takes \(names) and no other arguments")
        }
        guard operands.count == count else { throw usage("\(names) is missing") }
    }

    /// The profile that is meant.
    var profile: ProfileName {
        get throws(Complaint) {
            guard let text = self[.profile] else { return .standard }
            do {
                return try ProfileName(text)
            } catch {
                let place = given(.profile) == nil ? "CANOPY_PROFILE" : "--profile"
                throw usage("\(place): \(error)")
            }
        }
    }

    /// A whole number within `range`; nil if the option is not there.
    func number(_ option: Option, _ range: ClosedRange<Int>) throws(Complaint) -> Int? {
        guard let text = given(option) else { return nil }
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }),
            let number = Int(text), range.contains(number)
        else {
            let limit = range.upperBound == .max ? "of at least" : "from"
            let upper = range.upperBound == .max ? "" : " to \(range.upperBound)"
            throw usage(
                "--\(option.name) takes a whole number \(limit) \(range.lowerBound)\(upper), "
                    + "not: \(text)")
        }
        return number
    }
}
