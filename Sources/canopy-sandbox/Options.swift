internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem
internal import SandboxRules

/// The command line.
struct Options {
    /// 0 lets the kernel choose.
    var port: UInt16 = 0
    /// How long access tokens live.
    ///
    /// Canopy's sample answer says 900 seconds.
    var lifetime = TimeSpan.seconds(900)
    /// How far the sandbox's clock is ahead of the machine's.
    var clock = TimeSpan.zero
    var rules = ServerRules()
    var wire = WireSwitches()
    var faults: [PlannedFault] = []
    var chaos: Chaos?
    /// Identities besides those that are always there.
    var extraIdentities = 0
    /// The least length of access tokens.
    var accessTokenBytes = 0
    /// The least length of refresh tokens.
    var refreshTokenBytes = 0

    /// What the command line asks for.
    enum Request {
        case serve(Options)
        case help
        case version
    }

    struct Unusable: Error {
        let text: String
    }

    private enum Name: Int32, CaseIterable {
        // Above any character, so that '?' and ':' stay getopt's own answers.
        case port = 256
        case lifetime, grace, clock, refreshLifetime, fault, chaos, identities, tokenBytes
        case refreshTokenBytes
        case noHistory, noThrottle, newSuccessor, noWrap, strict, codeNull, strayHeaders
        case help, version

        var text: StaticString {
            switch self {
            case .port: "port"
            case .lifetime: "lifetime"
            case .grace: "grace"
            case .clock: "clock"
            case .refreshLifetime: "refresh-lifetime"
            case .fault: "fault"
            case .chaos: "chaos"
            case .identities: "identities"
            case .tokenBytes: "token-bytes"
            case .refreshTokenBytes: "refresh-token-bytes"
            case .noHistory: "no-history"
            case .noThrottle: "no-throttle"
            case .newSuccessor: "new-successor"
            case .noWrap: "no-wrap"
            case .strict: "strict"
            case .codeNull: "code-null"
            case .strayHeaders: "stray-headers"
            case .help: "help"
            case .version: "version"
            }
        }

        var takesValue: Bool {
            switch self {
            case .port, .lifetime, .grace, .clock, .refreshLifetime, .fault, .chaos, .identities,
                .tokenBytes, .refreshTokenBytes:
                true
            case .noHistory, .noThrottle, .newSuccessor, .noWrap, .strict, .codeNull,
                .strayHeaders, .help, .version:
                false
            }
        }
    }

    /// Reads the process's arguments.
    static func parse() throws(Unusable) -> Request {
        var table = Name.allCases.map { name in
            option(
                name: UnsafeRawPointer(name.text.utf8Start).assumingMemoryBound(to: CChar.self),
                has_arg: name.takesValue ? 1 : 0, flag: nil, val: name.rawValue)
        }
        table.append(option())
        clinux_reset_options()
        var options = Options()
        while true {
            // The leading colon makes getopt tell a missing value from an unknown option.
            let found = getopt_long(
                ProgramArguments.count, ProgramArguments.vector, ":h", table, nil)
            if found == -1 { break }
            if found == Int32(UInt8(ascii: "h")) { return .help }
            guard let name = Name(rawValue: found) else {
                let position = Int(clinux_optind()) - 1
                let argument = ProgramArguments.all.dropFirst(position).first ?? ""
                throw Unusable(
                    text: found == Int32(UInt8(ascii: ":"))
                        ? "\(argument) needs a value" : "unknown option \(argument)")
            }
            switch name {
            case .help: return .help
            case .version: return .version
            case .port:
                guard let port = UInt16(value) else {
                    throw Unusable(text: "--port \(value): not a port (0 to 65535)")
                }
                options.port = port
            case .lifetime:
                options.lifetime = try seconds(name, 1...315_360_000)
            case .grace:
                options.rules.grace = try seconds(name, 0...315_360_000)
            case .clock:
                // Ten years: dates stay after 1970 and have four digits.
                options.clock = try seconds(name, -315_360_000...315_360_000)
            case .refreshLifetime:
                options.rules.refreshTokenLifetime = try seconds(name, 1...315_360_000)
            case .fault:
                do throws(PlannedFault.Unusable) {
                    options.faults.append(try PlannedFault(flag: value))
                } catch {
                    throw Unusable(text: "--fault \(value): \(error.text)")
                }
            case .chaos:
                guard let chaos = Chaos(flag: value) else {
                    throw Unusable(
                        text: "--chaos \(value): not SEED:PERMILLE, a whole number and one of 0 "
                            + "to 1000")
                }
                options.chaos = chaos
            case .identities:
                options.extraIdentities = try number(name, 0...100_000)
            case .tokenBytes:
                options.accessTokenBytes = try number(name, 0...(1 << 20))
            case .refreshTokenBytes:
                // One comes back in a request's body.
                options.refreshTokenBytes = try number(name, 0...(Limits.requestBodyBytes / 2))
            case .noHistory: options.rules.keepsHistory = false
            case .noThrottle: options.rules.throttlesSignIns = false
            case .newSuccessor: options.rules.graceAnswer = .newSuccessor
            case .noWrap: options.wire.wrapsData = false
            case .strict: options.wire.refusesUnknownFields = true
            case .codeNull: options.wire.codesAreNull = true
            case .strayHeaders: options.wire.sendsStrayHeaders = true
            }
        }
        let rest = ProgramArguments.all.dropFirst(Int(clinux_optind()))
        if let extra = rest.first { throw Unusable(text: "unexpected argument \(extra)") }
        let emails = Set(Canopy.people(extra: options.extraIdentities).map(\.email))
        for fault in options.faults {
            guard let email = fault.email, !emails.contains(email) else { continue }
            throw Unusable(text: "--fault: identity \(email): not one of this sandbox's")
        }
        return .serve(options)
    }

    private static var value: String {
        clinux_optarg().map { String(cString: $0) } ?? ""
    }

    private static func number(_ name: Name, _ range: ClosedRange<Int>) throws(Unusable) -> Int {
        guard let number = Int(value), range.contains(number) else {
            throw Unusable(
                text: "--\(name.text) \(value): not a number from \(range.lowerBound) to "
                    + "\(range.upperBound)")
        }
        return number
    }

    private static func seconds(
        _ name: Name, _ range: ClosedRange<Int64>
    ) throws(Unusable) -> TimeSpan {
        guard let seconds = Int64(value), range.contains(seconds) else {
            throw Unusable(
                text: "--\(name.text) \(value): not a number of seconds from \(range.lowerBound) "
                    + "to \(range.upperBound)")
        }
        return .seconds(seconds)
    }
}

/// How answers are put, where Canopy's documents leave it open.
struct WireSwitches {
    /// Whether one resource comes as `{"data":…}`.
    var wrapsData = true
    /// Whether a field that an endpoint does not know is a 400.
    var refusesUnknownFields = false
    /// Whether `error.code` is always null.
    var codesAreNull = false
    /// Whether an interim answer before each, and trailers behind it, tell another time and to wait.
    var sendsStrayHeaders = false
}
