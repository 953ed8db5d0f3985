internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// The options and operands of one command, as getopt_long found them.
struct Arguments {
    private let command: String
    /// The options that are there.
    private var present: Options = []

    /// The value of each of them, by its raw value; nil for one that has none.
    ///
    /// No dictionary, for the reason that ``Options`` is no array.
    private var values: [32 of UnsafeMutablePointer<CChar>?] = .init(repeating: nil)

    private let vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    /// How many elements of the argument vector were read, the command's own name included.
    let consumed: Int

    /// How many there are that are no options.
    private var operandCount: Int { count - consumed }

    /// What is no option, in order.
    var operands: [String] { (0..<operandCount).compactMap(operand) }

    /// The first of ``operands``; no array is made for it.
    var firstOperand: String? { operandCount > 0 ? operand(0) : nil }

    private func operand(_ index: Int) -> String? {
        vector[consumed + index].map { String(cString: $0) }
    }

    /// Reads `count` elements at `vector`, of which the first is the command's name.
    ///
    /// With `stopsAtOperand` the first operand ends the options, else options may follow
    /// operands, as everywhere in GNU; `--` ends them in any case.
    init(
        _ command: String, _ vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
        count: Int32, options: Options, stopsAtOperand: Bool = false
    ) throws(Complaint) {
        self.command = command
        self.vector = vector
        let letters = UnsafeMutablePointer<CChar>.allocate(capacity: 2 * options.count + 3)
        let table = UnsafeMutablePointer<CLinux.option>.allocate(capacity: options.count + 1)
        defer {
            letters.deallocate()
            table.deallocate()
        }
        Self.describe(options, letters, table, stopsAtOperand)
        clinux_restart_options()
        while true {
            let found = getopt_long(count, vector, letters, table, nil)
            if found == -1 { break }
            guard let option = options.first(where: { $0.isMeant(by: found) }) else {
                consumed = Int(clinux_optind())
                self.count = consumed
                throw mistake(
                    found, in: vector, options: options,
                    runsAnother: stopsAtOperand && command != "canopyctl")
            }
            present = present + [option]
            let value = clinux_optarg()
            // What a variable that is not set leaves behind, and nobody means.
            if option.value != nil, value?.pointee == 0 {
                consumed = Int(clinux_optind())
                self.count = consumed
                throw usage("the option --\(option.name) has an empty value")
            }
            values[Int(option.rawValue)] = value
        }
        consumed = Int(clinux_optind())
        self.count = max(Int(count), consumed)
    }

    /// Writes what getopt_long wants to know of the options.
    private static func describe(
        _ options: Options, _ letters: UnsafeMutablePointer<CChar>,
        _ table: UnsafeMutablePointer<CLinux.option>, _ stopsAtOperand: Bool
    ) {
        var length = 0
        func add(_ letter: Unicode.Scalar) {
            letters[length] = CChar(truncatingIfNeeded: letter.value)
            length += 1
        }
        if stopsAtOperand { add("+") }
        // Makes getopt tell a missing value from an unknown option.
        add(":")
        for (index, option) in options.enumerated() {
            // A StaticString is NUL-terminated and never freed.
            let name = UnsafeRawPointer(option.name.utf8Start).assumingMemoryBound(to: CChar.self)
            table[index] = CLinux.option(
                name: name, has_arg: option.value == nil ? 0 : 1, flag: nil, val: option.number)
            guard let letter = option.letter else { continue }
            add(letter)
            if option.value != nil { add(":") }
        }
        letters[length] = 0
        table[options.count] = CLinux.option()
    }

    private func mistake(
        _ found: Int32, in vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
        options: Options, runsAnother: Bool
    ) -> Complaint {
        let code = clinux_optopt()
        let known = options.first { $0.isMeant(by: code) }
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
        // `canopyctl curl -s …` is the slip of the hand: the option was meant for curl.
        return usage(
            "there is no option \(name)",
            cure: !runsAnother
                ? nil
                : "put -- before what is meant for the program; see: canopyctl \(command) --help")
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

    /// The option's value, empty if it has none; nil if it is not there.
    private func given(_ option: Option) -> String? {
        guard present.contains(option) else { return nil }
        return values[Int(option.rawValue)].map { String(cString: $0) } ?? ""
    }

    /// Whether the option is there.
    subscript(flag option: Option) -> Bool { present.contains(option) }

    /// The option's value, else that of the variable that stands in for it.
    subscript(option: Option) -> String? {
        given(option) ?? option.variable.flatMap { Environment.process[$0] }
    }

    /// Refuses fewer operands than `least`, and nothing else of what is another program's.
    func check(operandsFrom least: Int, named names: String) throws(Complaint) {
        guard operandCount >= least else { throw usage("\(names) are missing") }
    }

    /// Refuses secrets among the options, and operands beyond `count`.
    func check(operands count: Int, named names: String = "") throws(Complaint) {
        if self[flag: .password] { throw secretAsArgument(.password) }
        if self[flag: .code] { throw secretAsArgument(.code) }
        guard operandCount <= count else {
            // Not repeated: it may be a password in the wrong place.
            throw usage(
                count == 0
                    ? "\(command) takes options only, no other arguments"
                    : "\(command) takes \(names) and no other arguments")
        }
        guard operandCount == count else { throw usage("\(names) is missing") }
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

extension Option {
    /// What getopt_long calls it by its name: above every letter.
    fileprivate var number: Int32 { 0x110000 + rawValue }

    /// Whether getopt_long means it, by its name or its letter.
    fileprivate func isMeant(by found: Int32) -> Bool {
        found == number || letter.map { Int32($0.value) } == found
    }
}
