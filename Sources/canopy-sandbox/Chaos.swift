internal import AgentCore

/// Draws faults for refreshes by chance, the same ones from the same seed.
///
/// Only such as a client can recover from: none changes the session's kind, none is Canopy's own
/// refusal, and none waits for a release. A client that goes on failing for longer than the grace
/// after a lost answer has lost its session all the same, by Canopy's rules.
struct Chaos {
    let seed: UInt64
    /// Refreshes of 1000 that meet a fault.
    let permille: UInt64
    /// Faults drawn so far.
    private(set) var drawn = 0
    private var draws: UInt64 = 0

    /// nil unless `permille` is one of 0 to 1000.
    init?(seed: Int64, permille: Int64) {
        guard (0...1000).contains(permille) else { return nil }
        self.seed = UInt64(bitPattern: seed)
        self.permille = UInt64(permille)
    }

    /// Reads `SEED:PERMILLE`.
    init?(flag: String) {
        let parts = flag.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let seed = Int64(parts[0]), let permille = Int64(parts[1]) else {
            return nil
        }
        self.init(seed: seed, permille: permille)
    }

    /// What the next refresh meets, if anything.
    mutating func draw() -> Fault? {
        guard below(1000) < permille else { return nil }
        drawn += 1
        let kind = Self.kinds[Int(below(UInt64(Self.kinds.count)))]
        let when: Fault.When =
            kind.isFixed ? kind.usually : below(2) == 0 ? .before : .after
        var retryAfter: Fault.RetryAfter?
        if kind == .status429 || kind == .status503 {
            switch below(3) {
            case 0: retryAfter = .seconds(Int64(1 + below(2)))
            case 1: retryAfter = .date(Int64(1 + below(2)))
            // Servers often say nothing.
            default: break
            }
        }
        return Fault(
            kind: kind, when: when, retryAfter: retryAfter, delay: Int(50 + below(1950)),
            status: 400)
    }

    private static let kinds = Fault.Kind.allCases.filter { kind in
        switch kind {
        case .answerLost, .requestLost, .reset, .status302, .status400HTML, .status401HTML,
            .status403HTML, .status408, .status429, .status500, .status502, .status503, .status504,
            .slow, .truncatedJSON, .truncatedBody, .html200, .empty200, .nonJSON:
            true
        case .silence, .hold, .late401, .noRefreshToken, .noExpiresIn, .echoBody, .hugeBody,
            .longBody, .unendedBody, .openBody, .brokenText:
            false
        }
    }

    /// A number below `bound`, which is small: the bias does not matter.
    private mutating func below(_ bound: UInt64) -> UInt64 {
        draws += 1
        // SplitMix64, whose step is the golden ratio's.
        return TokenMint.shuffled(seed &+ draws &* 0x9e37_79b9_7f4a_7c15) % bound
    }

    func write(to json: inout JSONWriter<[UInt8]>) {
        json.beginObject()
        json.member("seed", Int64(bitPattern: seed))
        json.member("permille", Int64(permille))
        json.member("drawn", Int64(drawn))
        json.endObject()
    }
}
