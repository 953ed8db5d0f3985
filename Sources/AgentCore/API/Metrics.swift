/// Counts of durations, in the buckets of an OpenMetrics histogram.
package struct Histogram: Sendable, Equatable {
    /// Upper bounds of the buckets in seconds, ascending; above the last there is one more bucket.
    package let bounds: [Double]
    package private(set) var counts: [Int64]
    package private(set) var sum: Double = 0

    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// For answers: most come from memory within microseconds, some wait for a rotation.
    package static let requests = Histogram(
        bounds: [0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1, 10, 120])

    /// For exchanges: 60 ms on a good network, a minute and more on a bad one.
    package static let exchanges = Histogram(bounds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120])

    package mutating func observe(_ span: TimeSpan) {
        let seconds = span.seconds
        var bucket = 0
        while bucket < bounds.count, seconds > bounds[bucket] { bucket += 1 }
        counts[bucket] += 1
        sum += seconds
    }
}

/// What was asked and how it was answered, since the daemon started.
package struct RequestStatistics: Sendable {
    /// What was answered at least once: some dozens at the most, and the token's 200 among the first.
    package private(set) var answers: [(route: Route.Label, status: Int, count: Int64)] = []
    package private(set) var durations = Histogram.requests

    package init() {}

    /// Counts one answer, `span` after the request had been read.
    package mutating func answered(_ route: Route.Label, status: Int, after span: TimeSpan) {
        durations.observe(span)
        for index in answers.indices
        where answers[index].route == route && answers[index].status == status {
            answers[index].count += 1
            return
        }
        answers.append((route, status, 1))
    }
}

extension Route {
    /// What the metrics call a route; `none` for requests that led to no route.
    package enum Label: UInt8, Sendable, CaseIterable {
        case token, profiles, profile, login, mfa, refresh, logout, identity, sessions
        case session, events, status, metrics
        case none
    }

    package var label: Label {
        switch self {
        case .token: .token
        case .profiles: .profiles
        case .profile: .profile
        case .logIn: .login
        case .multiFactor: .mfa
        case .refresh: .refresh
        case .logOut: .logout
        case .identity: .identity
        case .sessions: .sessions
        case .revokeSession: .session
        case .events: .events
        case .status: .status
        case .metrics: .metrics
        }
    }
}

/// What the metrics say (INTERFACE, "Metrics").
package struct MetricsView: Sendable {
    package let version: String
    package let profiles: [(profile: ProfileName, state: ProfileState, expiresAt: WallTime?)]
    package let rotations: [(profile: ProfileName, outcome: String, count: Int64)]
    package let exchanges: [(job: JobKind, durations: Histogram)]
    package let requests: RequestStatistics
    package let connections: Int
    package let keyring: KeyringState

    package init(
        version: String,
        profiles: [(profile: ProfileName, state: ProfileState, expiresAt: WallTime?)],
        rotations: [(profile: ProfileName, outcome: String, count: Int64)],
        exchanges: [(job: JobKind, durations: Histogram)], requests: RequestStatistics,
        connections: Int, keyring: KeyringState
    ) {
        self.version = version
        self.profiles = profiles
        self.rotations = rotations
        self.exchanges = exchanges
        self.requests = requests
        self.connections = connections
        self.keyring = keyring
    }

    /// OpenMetrics 1.0 text.
    package var text: [UInt8] {
        var page = MetricsPage()
        page.family("build", .info, "The running version.")
        page.sample("build_info", [("version", version)], "1")

        page.family("profile_state", .gauge, "1 for the state that the profile is in.")
        for profile in profiles {
            for state in ProfileState.allCases {
                page.sample(
                    "profile_state",
                    [("profile", profile.profile.text), ("state", state.rawValue)],
                    state == profile.state ? "1" : "0")
            }
        }
        page.family(
            "token_expiry_timestamp_seconds", .gauge, "When the access token in hand expires.",
            unit: "seconds")
        for profile in profiles {
            guard let expiresAt = profile.expiresAt else { continue }
            page.sample(
                "token_expiry_timestamp_seconds", [("profile", profile.profile.text)],
                String(expiresAt.seconds))
        }
        page.family("rotations", .counter, "Rotations that were tried.")
        for rotation in rotations {
            page.sample(
                "rotations_total",
                [("profile", rotation.profile.text), ("outcome", rotation.outcome)],
                String(rotation.count))
        }
        page.family(
            "exchange_duration_seconds", .histogram, "From an exchange's start to its report.",
            unit: "seconds")
        for exchange in exchanges {
            page.histogram(
                "exchange_duration_seconds", [("job", exchange.job.metricsName)],
                exchange.durations)
        }
        page.family("requests", .counter, "Requests that were answered.")
        for (route, status, count) in requests.answers {
            page.sample(
                "requests_total", [("route", "\(route)"), ("status", String(status))],
                String(count))
        }
        page.family(
            "request_duration_seconds", .histogram, "From a request's last byte to its answer.",
            unit: "seconds")
        page.histogram("request_duration_seconds", [], requests.durations)
        page.family("connections", .gauge, "Open connections.")
        page.sample("connections", [], String(connections))
        page.family("keyring_state", .gauge, "1 for the state that the keyring is in.")
        for state in KeyringState.allCases {
            page.sample(
                "keyring_state", [("state", state.rawValue)], state == keyring ? "1" : "0")
        }
        return page.finish()
    }
}

extension JobKind {
    fileprivate var metricsName: String {
        switch self {
        case .load: "load"
        case .signIn: "sign_in"
        case .rotate: "rotate"
        case .signOut: "sign_out"
        case .identity: "identity"
        case .sessions: "sessions"
        case .revokeSession: "revoke_session"
        case .secondFactor: "second_factor"
        case .examine: "examine"
        }
    }
}

/// Text in the OpenMetrics format.
private struct MetricsPage {
    enum Kind: String {
        case info, gauge, counter, histogram
    }

    private var text = ""

    mutating func family(
        _ name: StaticString, _ kind: Kind, _ help: StaticString, unit: StaticString? = nil
    ) {
        text += "# TYPE canopyd_\(name) \(kind.rawValue)\n"
        if let unit { text += "# UNIT canopyd_\(name) \(unit)\n" }
        text += "# HELP canopyd_\(name) \(help)\n"
    }

    mutating func sample(_ name: String, _ labels: [(String, String)], _ value: String) {
        text += "canopyd_\(name)"
        if !labels.isEmpty {
            text += "{"
            text += labels.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ",")
            text += "}"
        }
        text += " \(value)\n"
    }

    mutating func histogram(_ name: String, _ labels: [(String, String)], _ histogram: Histogram) {
        var total: Int64 = 0
        for (index, count) in histogram.counts.enumerated() {
            total += count
            let bound =
                index < histogram.bounds.count ? histogram.bounds[index].description : "+Inf"
            sample(name + "_bucket", labels + [("le", bound)], String(total))
        }
        sample(name + "_count", labels, String(total))
        sample(name + "_sum", labels, histogram.sum.description)
    }

    func finish() -> [UInt8] { Array((text + "# EOF\n").utf8) }

    private func escaped(_ value: String) -> String {
        var result = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
