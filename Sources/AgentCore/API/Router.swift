/// Tells what a request asks for: every route of INTERFACE is a line of one table.
package enum Router {
    /// A request that leads to no route.
    package struct Misrouted: Error, Equatable, Sendable {
        package let problem: Problem

        /// The methods that the resource takes, where the method was the mistake.
        package let allow: String?

        package init(_ problem: Problem, allow: String? = nil) {
            self.problem = problem
            self.allow = allow
        }
    }

    /// Reads path and query of `head` out of `bytes`, in which it was found.
    ///
    /// A parameter that the route does not know is refused: a misspelt `min_validity` that was
    /// passed over would hand out tokens that are about to expire.
    package static func route(
        _ head: RequestHead, _ bytes: UnsafeRawBufferPointer
    ) throws(Misrouted) -> Route {
        guard !head.fromBrowser else {
            throw Misrouted(
                Problem(
                    .forbidden,
                    "the request has an Origin or a Referer, or a Host other than canopyd and "
                        + "localhost: web pages are not served"))
        }
        let path = UnsafeRawBufferPointer(rebasing: bytes[head.path])
        let method: RequestHead.Method = head.method == .head ? .get : head.method
        var allowed: [RequestHead.Method] = []
        for line in table {
            guard let captures = match(line.path, path) else { continue }
            guard line.method == method else {
                allowed.append(line.method)
                continue
            }
            let query = head.query.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) }
            do throws(Problem) {
                let parameters = try Parameters(query, allowing: line.parameters)
                return try line.route(Request(captures, parameters, accept: head.accept))
            } catch {
                throw Misrouted(error)
            }
        }
        // `OPTIONS *` asks about all resources at once.
        if path.elementsEqual("*".utf8) {
            for line in table where !allowed.contains(line.method) { allowed.append(line.method) }
        }
        guard allowed.isEmpty else {
            let names = allowed.map(\.allowName).joined(separator: ", ")
            throw Misrouted(
                Problem(.methodNotAllowed, "this resource takes \(names)"), allow: names)
        }
        throw Misrouted(
            Problem(.notFound, "there is nothing under this path; the API starts with /v1/"))
    }

    // MARK: The table

    private struct Line: Sendable {
        let method: RequestHead.Method
        /// `{}` stands for one segment of any text.
        let path: StaticString
        let parameters: [Parameter]
        let route: @Sendable (Request) throws(Problem) -> Route

        init(
            _ method: RequestHead.Method, _ path: StaticString, _ parameters: [Parameter] = [],
            _ route: @escaping @Sendable (Request) throws(Problem) -> Route
        ) {
            self.method = method
            self.path = path
            self.parameters = parameters
            self.route = route
        }
    }

    private enum Parameter: String {
        case profile
        case minimumValidity = "min_validity"
        case timeout
        case ifGeneration = "if_generation"
        case local
    }

    /// The token comes first: it is what is asked for a thousand times a second.
    private static let table: [Line] = [
        Line(.get, "/v1/token", [.profile, .minimumValidity, .timeout]) {
            (request) throws(Problem) in
            .token(
                try request.profileParameter ?? .standard,
                minimumValidity: try request.parameters.number(
                    .minimumValidity, 0...Limits.validityMaximumSeconds
                )
                .map(TimeSpan.seconds),
                timeout: try request.timeout, asText: request.accept == .text)
        },
        Line(.get, "/v1/profiles") { (_) throws(Problem) in .profiles },
        Line(.get, "/v1/profiles/{}") { (request) throws(Problem) in
            .profile(try request.profile)
        },
        Line(.post, "/v1/profiles/{}/login") { (request) throws(Problem) in
            .logIn(try request.profile)
        },
        Line(.post, "/v1/profiles/{}/mfa") { (request) throws(Problem) in
            .multiFactor(try request.profile)
        },
        Line(.post, "/v1/profiles/{}/refresh", [.timeout, .ifGeneration]) {
            (request) throws(Problem) in
            .refresh(
                try request.profile,
                ifGeneration: try request.parameters.number(.ifGeneration, 0...Int64.max),
                timeout: try request.timeout)
        },
        Line(.post, "/v1/profiles/{}/logout", [.local]) { (request) throws(Problem) in
            .logOut(
                try request.profile, isLocal: try request.parameters.number(.local, 0...1) == 1)
        },
        Line(.get, "/v1/profiles/{}/identity") { (request) throws(Problem) in
            .identity(try request.profile)
        },
        Line(.get, "/v1/profiles/{}/sessions") { (request) throws(Problem) in
            .sessions(try request.profile)
        },
        Line(.delete, "/v1/profiles/{}/sessions/{}") { (request) throws(Problem) in
            .revokeSession(try request.profile, id: try request.session)
        },
        Line(.get, "/v1/events", [.profile]) { (request) throws(Problem) in
            .events(try request.profileParameter)
        },
        Line(.get, "/v1/status") { (_) throws(Problem) in .status },
        Line(.get, "/v1/metrics") { (_) throws(Problem) in .metrics },
    ]

    // MARK: What a line's closure reads

    private struct Request {
        let captures: Captures
        let parameters: Parameters
        let accept: RequestHead.Preference

        init(_ captures: Captures, _ parameters: Parameters, accept: RequestHead.Preference) {
            self.captures = captures
            self.parameters = parameters
            self.accept = accept
        }

        var profile: ProfileName {
            get throws(Problem) {
                guard let bytes = captures.first else {
                    preconditionFailure("a route without a profile in its path asked for it")
                }
                return try named(decoded(bytes))
            }
        }

        var session: String {
            get throws(Problem) {
                guard let bytes = captures.second else {
                    preconditionFailure("a route without a session in its path asked for it")
                }
                return try decoded(bytes)
            }
        }

        var profileParameter: ProfileName? {
            get throws(Problem) {
                guard let text = parameters.text(.profile) else { return nil }
                return try named(text)
            }
        }

        var timeout: TimeSpan {
            get throws(Problem) {
                let limit = Int64(Limits.requestTimeoutMaximumSeconds)
                return .seconds(
                    try parameters.number(.timeout, 0...limit)
                        ?? Int64(Limits.requestTimeoutSeconds))
            }
        }

        private func decoded(_ segment: UnsafeRawBufferPointer) throws(Problem) -> String {
            do throws(EncodedText.Malformed) {
                return try EncodedText(segment).decoded()
            } catch {
                throw Problem(.badRequest, "the path cannot be decoded: \(error)")
            }
        }

        private func named(_ text: String) throws(Problem) -> ProfileName {
            do throws(ProfileName.Malformed) {
                return try ProfileName(text)
            } catch {
                throw Problem(.badRequest, error.description)
            }
        }
    }

    /// The decoded values of a query's parameters.
    private struct Parameters {
        private var values: [(parameter: Parameter, text: String)] = []

        init(_ query: UnsafeRawBufferPointer?, allowing allowed: [Parameter]) throws(Problem) {
            for item in RequestTarget(
                path: UnsafeRawBufferPointer(start: nil, count: 0), query: query
            )
            .items {
                let (name, text): (String, String)
                do throws(EncodedText.Malformed) {
                    name = try item.name.decoded()
                    text = try item.value?.decoded() ?? ""
                } catch {
                    throw Problem(.badRequest, "the query cannot be decoded: \(error)")
                }
                guard let parameter = Parameter(rawValue: name), allowed.contains(parameter) else {
                    let known =
                        allowed.isEmpty
                        ? "it takes none"
                        : "it takes " + allowed.map(\.rawValue).joined(separator: ", ")
                    throw Problem(
                        .badRequest,
                        "this resource has no parameter '\(readable(name))'; \(known)")
                }
                guard !values.contains(where: { $0.parameter == parameter }) else {
                    throw Problem(
                        .badRequest, "the parameter \(parameter.rawValue) is given more than once")
                }
                values.append((parameter, text))
            }
        }

        func text(_ parameter: Parameter) -> String? {
            values.first { $0.parameter == parameter }?.text
        }

        func number(
            _ parameter: Parameter, _ range: ClosedRange<Int64>
        ) throws(Problem) -> Int64? {
            guard let text = text(parameter) else { return nil }
            guard !text.isEmpty, text.utf8.allSatisfy(ASCII.isDigit), let value = Int64(text),
                range.contains(value)
            else {
                throw Problem(
                    .badRequest,
                    "\(parameter.rawValue) is '\(readable(text))'; it is a whole number from "
                        + "\(range.lowerBound) to \(range.upperBound)")
            }
            return value
        }
    }

    // MARK: Paths

    /// The segments that stand where the pattern has `{}`, still encoded.
    private struct Captures {
        var first: UnsafeRawBufferPointer?
        var second: UnsafeRawBufferPointer?
    }

    private static func match(
        _ pattern: StaticString, _ path: UnsafeRawBufferPointer
    ) -> Captures? {
        var captures = Captures()
        let (text, length) = (pattern.utf8Start, pattern.utf8CodeUnitCount)
        var (at, position) = (0, 0)
        while at < length {
            if text[at] == UInt8(ascii: "{") {
                let start = position
                while position < path.count, path[position] != UInt8(ascii: "/") { position += 1 }
                guard position > start else { return nil }
                let segment = UnsafeRawBufferPointer(rebasing: path[start..<position])
                if captures.first == nil {
                    captures.first = segment
                } else {
                    captures.second = segment
                }
                at += 2
                continue
            }
            guard position < path.count, path[position] == text[at] else { return nil }
            at += 1
            position += 1
        }
        return position == path.count ? captures : nil
    }
}

extension RequestHead.Method {
    /// The method as an `Allow` header has it; a resource that is read takes HEAD as well.
    fileprivate var allowName: String {
        switch self {
        case .get: "GET, HEAD"
        case .post: "POST"
        case .delete: "DELETE"
        case .head: "HEAD"
        case .put: "PUT"
        case .patch: "PATCH"
        case .options: "OPTIONS"
        case .other: preconditionFailure("no resource takes a method without a name")
        }
    }
}

/// The start of a text that somebody else wrote, for a message.
private func readable(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars.prefix(Limits.shownParameterCharacters) {
        result.unicodeScalars.append(scalar.value < 0x20 || scalar.value == 0x7F ? "?" : scalar)
    }
    let isWhole = text.unicodeScalars.count <= Limits.shownParameterCharacters
    return isWhole ? result : result + "…"
}
