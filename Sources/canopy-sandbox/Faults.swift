internal import AgentCore

/// Something that goes wrong with one request.
struct Fault {
    let kind: Kind
    /// Whether the request takes effect (rotates, signs in) before things go wrong.
    let when: When
    let retryAfter: RetryAfter?
    /// What `slow` waits, in milliseconds.
    let delay: Int
    /// What `echo-body` answers with.
    let status: Int

    enum Kind: String, CaseIterable {
        /// The request takes effect and the connection closes without an answer.
        case answerLost = "answer-lost"
        /// The connection is reset.
        case reset
        /// Nothing ever comes, and the connection stays open.
        case silence
        /// The connection closes and nothing happened.
        case requestLost = "request-lost"
        case status302 = "status-302"
        case status400HTML = "status-400-html"
        case status401HTML = "status-401-html"
        case status403HTML = "status-403-html"
        case status408 = "status-408"
        case status429 = "status-429"
        case status500 = "status-500"
        case status502 = "status-502"
        case status503 = "status-503"
        case status504 = "status-504"
        /// The answer comes after `delay_ms`.
        case slow
        /// The answer comes when `POST /admin/release` says so.
        case hold
        /// Nothing happens, and when `POST /admin/release` says so the answer is that the token is
        /// dead, though it is not.
        case late401 = "late-401"
        /// The first half of the answer, with a length to match.
        case truncatedJSON = "truncated-json"
        /// Half of the answer under the whole one's length, and then the end of the connection.
        case truncatedBody = "truncated-body"
        /// All of the answer under a length of one byte more, and then the end of the connection.
        case unendedBody = "unended-body"
        /// The same, and the connection stays open: the byte might come yet.
        case openBody = "open-body"
        /// A good answer behind a byte order mark, and with half a character in another member.
        case brokenText = "broken-text"
        /// A portal's page with status 200.
        case html200 = "html-200"
        case empty200 = "empty-200"
        case nonJSON = "non-json"
        case noRefreshToken = "no-refresh-token"
        case noExpiresIn = "no-expires-in"
        /// An error whose message repeats the request's body.
        case echoBody = "echo-body"
        /// A good answer behind 2 MiB of padding.
        case hugeBody = "huge-body"
        /// A good answer, and 2 MiB of padding behind it.
        case longBody = "long-body"

        var usually: When {
            switch self {
            case .answerLost, .reset, .silence, .slow, .hold, .truncatedJSON, .truncatedBody,
                .unendedBody, .openBody, .brokenText, .empty200, .nonJSON, .noRefreshToken,
                .noExpiresIn, .hugeBody, .longBody:
                .after
            case .requestLost, .late401, .status302, .status400HTML, .status401HTML, .status403HTML,
                .status408, .status429, .status500, .status502, .status503, .status504, .html200,
                .echoBody:
                .before
            }
        }

        /// Whether the fault can only be what its name says.
        var isFixed: Bool {
            switch self {
            case .answerLost, .requestLost, .late401, .truncatedJSON, .truncatedBody,
                .unendedBody, .openBody, .brokenText, .noRefreshToken, .noExpiresIn, .hugeBody,
                .longBody:
                true
            case .status302, .status400HTML, .status401HTML, .status403HTML, .status408, .status429,
                .status500, .status502, .status503, .status504, .reset, .silence, .slow, .hold,
                .empty200, .nonJSON, .html200, .echoBody:
                false
            }
        }
    }

    enum When: String {
        case before, after
    }

    enum RetryAfter: Equatable {
        case seconds(Int64)
        /// An HTTP date so many seconds after the sandbox's now.
        case date(Int64)

        init?(_ text: String) {
            if let seconds = Int64(text), seconds >= 0 {
                self = .seconds(seconds)
            } else if text.hasPrefix("date:"), let seconds = Int64(text.dropFirst(5)) {
                self = .date(seconds)
            } else {
                return nil
            }
        }
    }
}

/// A fault in the queue: whom it waits for, and how often it happens.
struct PlannedFault {
    enum Endpoint: String, CaseIterable {
        case login, refresh, logout, me, sessions, mfa
    }

    let endpoint: Endpoint
    /// Whose requests it spoils; nil for anybody's.
    let email: String?
    let fault: Fault
    /// How many requests it spoils; 0 for every one until it is deleted.
    let count: Int

    struct Unusable: Error {
        let text: String
    }

    /// Reads `NAME` or `NAME:KEY=VALUE,…`, with `before` and `after` for `when=…`.
    init(flag: String) throws(Unusable) {
        let parts = flag.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var fields: [String: String] = ["name": String(parts[0])]
        for setting in parts.count > 1 ? parts[1].split(separator: ",") : [] {
            let pair = setting.split(separator: "=", maxSplits: 1)
            if pair.count == 2 {
                fields[String(pair[0]).replacingDashes] = String(pair[1])
            } else if setting == "before" || setting == "after" {
                fields["when"] = String(setting)
            } else {
                throw Unusable(text: "\(setting): not KEY=VALUE, before or after")
            }
        }
        try self.init(fields)
    }

    /// Reads the members of an object of `POST /admin/faults`.
    init(_ object: JSONValue) throws(Unusable) {
        guard object.kind == .object else { throw Unusable(text: "a fault is an object") }
        var fields: [String: String] = [:]
        for (key, value) in object.members {
            if let text = value.string {
                fields[key] = text
            } else if let number = value.int {
                fields[key] = String(number)
            } else {
                throw Unusable(text: "\(key): neither a string nor a whole number")
            }
        }
        try self.init(fields)
    }

    private init(_ given: [String: String]) throws(Unusable) {
        var fields = given
        func number(_ key: String, _ range: ClosedRange<Int>, else usual: Int)
            throws(Unusable) -> Int
        {
            guard let text = fields.removeValue(forKey: key) else { return usual }
            guard let number = Int(text), range.contains(number) else {
                throw Unusable(
                    text: "\(key): \(text): not a number from \(range.lowerBound) to "
                        + "\(range.upperBound)")
            }
            return number
        }
        let name = fields.removeValue(forKey: "name") ?? ""
        guard let kind = Fault.Kind(rawValue: name) else {
            let names = Fault.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw Unusable(text: "no fault is named \"\(name)\"; there are \(names)")
        }
        let when: Fault.When
        if let text = fields.removeValue(forKey: "when") {
            guard let given = Fault.When(rawValue: text) else {
                throw Unusable(text: "when: \(text): neither before nor after")
            }
            guard !kind.isFixed || given == kind.usually else {
                throw Unusable(text: "\(name) is always \(kind.usually.rawValue)")
            }
            when = given
        } else {
            when = kind.usually
        }
        var retryAfter: Fault.RetryAfter?
        if let text = fields.removeValue(forKey: "retry_after") {
            guard let given = Fault.RetryAfter(text) else {
                throw Unusable(
                    text: "retry_after: \(text): neither SECONDS nor date:SECONDS")
            }
            retryAfter = given
        }
        let on = fields.removeValue(forKey: "on") ?? Endpoint.refresh.rawValue
        guard let endpoint = Endpoint(rawValue: on) else {
            let names = Endpoint.allCases.map(\.rawValue).joined(separator: ", ")
            throw Unusable(text: "on: \(on): not one of \(names)")
        }
        self.endpoint = endpoint
        email = fields.removeValue(forKey: "identity")
        count = try number("count", 0...1_000_000, else: 1)
        let delay = try number("delay_ms", 0...3_600_000, else: 1000)
        let status = try number("status", 400...599, else: 400)
        fault = Fault(
            kind: kind, when: when, retryAfter: retryAfter, delay: delay, status: status)
        if let unknown = fields.keys.min() {
            throw Unusable(
                text: "\(unknown): not one of name, when, on, identity, count, retry_after, "
                    + "delay_ms, status")
        }
    }
}

extension String {
    fileprivate var replacingDashes: String {
        String(map { $0 == "-" ? "_" : $0 })
    }
}

/// The faults that are still to happen, first come, first served.
struct FaultQueue {
    private var waiting: [(planned: PlannedFault, left: Int)] = []

    /// What happens to refreshes that no planned fault meets.
    var chaos: Chaos?

    init(_ faults: [PlannedFault], chaos: Chaos?) {
        self.chaos = chaos
        for fault in faults { add(fault) }
    }

    mutating func add(_ fault: PlannedFault) {
        waiting.append((fault, fault.count))
    }

    /// Nothing goes wrong from here on.
    mutating func removeAll() {
        waiting = []
        chaos = nil
    }

    /// Whether it matters whose a request is.
    var asksForIdentity: Bool { waiting.contains { $0.planned.email != nil } }

    /// Takes the fault that this request meets, if any; `email` is of the identity it is for, if
    /// that is known.
    mutating func take(for endpoint: PlannedFault.Endpoint, email: String?) -> Fault? {
        let met = waiting.firstIndex { entry in
            entry.planned.endpoint == endpoint
                && (entry.planned.email == nil || entry.planned.email == email)
        }
        guard let index = met else {
            return endpoint == .refresh ? chaos?.draw() : nil
        }
        let fault = waiting[index].planned.fault
        if waiting[index].planned.count > 0 {
            waiting[index].left -= 1
            if waiting[index].left == 0 { waiting.remove(at: index) }
        }
        return fault
    }

    func write(to json: inout JSONWriter<[UInt8]>) {
        json.beginArray()
        for (planned, left) in waiting {
            json.beginObject()
            json.member("name", planned.fault.kind.rawValue)
            json.member("when", planned.fault.when.rawValue)
            json.member("on", planned.endpoint.rawValue)
            json.member("identity", ifPresent: planned.email)
            json.member("left", Int64(left))
            switch planned.fault.retryAfter {
            case .seconds(let seconds)?: json.member("retry_after", String(seconds))
            case .date(let seconds)?: json.member("retry_after", "date:\(seconds)")
            case nil: break
            }
            json.endObject()
        }
        json.endArray()
    }
}
