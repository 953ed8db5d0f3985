internal import AgentCore
internal import SandboxRules

/// What a request comes to under a fault.
extension Canopy {
    /// Handles a request of Canopy's surface, with the fault that waits for it, if any.
    mutating func handle(_ request: HTTPRequest) -> Handling {
        guard let endpoint = Canopy.endpoint(of: request) else { return .answer(answer(request)) }
        let email = faults.asksForIdentity ? email(of: request, to: endpoint) : nil
        guard let fault = faults.take(for: endpoint, email: email) else {
            return .answer(answer(request))
        }

        switch (fault.kind, fault.when) {
        case (.requestLost, _): return .close
        case (.late401, _): return .late(invalidToken(request), .release)
        case (.reset, .before): return .reset
        case (.silence, .before): return .silence
        case (.slow, .before): return .deferred(.milliseconds(fault.delay))
        case (.hold, .before): return .deferred(.release)
        case (_, .before): return .answer(spoiled(nil, by: fault, request))
        case (.answerLost, .after):
            _ = answer(request)
            return .close
        case (.reset, .after):
            _ = answer(request)
            return .reset
        case (.silence, .after):
            _ = answer(request)
            return .silence
        case (.slow, .after): return .late(answer(request), .milliseconds(fault.delay))
        case (.hold, .after): return .late(answer(request), .release)
        case (_, .after): return .answer(spoiled(answer(request), by: fault, request))
        }
    }

    /// Whose request it is, as far as it says so.
    private func email(of request: HTTPRequest, to endpoint: PlannedFault.Endpoint) -> String? {
        switch endpoint {
        case .login:
            request.body.withUnsafeBytes { try? JSONReader.parse($0)["email"]?.string }
        case .refresh:
            presentedToken(request).flatMap(mint.id(of:)).flatMap(ledger.family(of:))
                .map { ledger.email(of: ledger.identity(of: $0)) }
        case .logout, .me, .sessions:
            grant(request.bearer).map { ledger.email(of: $0.identity) }
        // A challenge names nobody.
        case .mfa: nil
        }
    }

    /// What is sent instead of `good`, which is nil if the request took no effect.
    private func spoiled(_ good: Answer?, by fault: Fault, _ request: HTTPRequest) -> Answer {
        switch fault.kind {
        case .status302:
            var answer = Answer.html(302, "Found")
            answer.headers.append(("Location", "\(issuer)/portal"))
            return answer
        case .status400HTML: return .html(400, "Bad deployment")
        case .status401HTML: return .html(401, "Sign in to the network")
        case .status403HTML: return .html(403, "Blocked by policy")
        case .html200: return .html(200, "Welcome to the hotel")
        case .status408: return failed(408, "Request timeout", fault, request)
        case .status429: return failed(429, "Too many requests", fault, request)
        case .status500: return failed(500, "Internal server error", fault, request)
        case .status502: return failed(502, "Bad gateway", fault, request)
        case .status503: return failed(503, "Service unavailable", fault, request)
        case .status504: return failed(504, "Gateway timeout", fault, request)
        case .empty200: return Answer(200)
        case .nonJSON:
            var answer = Answer(200)
            answer.contentType = "text/plain"
            answer.body = Array("upstream said hello\n".utf8)
            return answer
        case .echoBody:
            return failure(
                request, fault.status, code: "http.echo",
                "Cannot process " + String(decoding: request.body, as: UTF8.self))
        case .truncatedJSON:
            return changed(good) { $0.body = Array($0.body.prefix($0.body.count / 2)) }
        case .truncatedBody:
            return changed(good) { answer in
                answer.claimedLength = answer.body.count
                answer.body = Array(answer.body.prefix(answer.body.count / 2))
            }
        case .unendedBody: return changed(good) { $0.claimedLength = $0.body.count + 1 }
        case .openBody:
            return changed(good) { answer in
                answer.claimedLength = answer.body.count + 1
                answer.staysOpen = true
            }
        case .brokenText:
            return changed(good) { answer in
                guard answer.body.last == UInt8(ascii: "}") else { return }
                answer.body.removeLast()
                answer.body += Array(#","halves":"\ud83d \ude00 "#.utf8) + [0xF0, 0x9F, 0xFF]
                answer.body = [0xEF, 0xBB, 0xBF] + answer.body + Array(#""}"#.utf8)
            }
        case .noRefreshToken: return changed(good) { $0.body = without("refresh_token", $0.body) }
        case .noExpiresIn: return changed(good) { $0.body = without("expires_in", $0.body) }
        case .hugeBody:
            return changed(good) { answer in
                guard answer.body.first == UInt8(ascii: "{") else { return }
                answer.body.replaceSubrange(..<1, with: Array("{".utf8) + padding + Array(",".utf8))
            }
        case .longBody:
            return changed(good) { answer in
                guard answer.body.last == UInt8(ascii: "}") else { return }
                answer.body.removeLast()
                answer.body += Array(",".utf8) + padding + Array("}".utf8)
            }
        case .answerLost, .requestLost, .reset, .silence, .slow, .hold, .late401:
            preconditionFailure("\(fault.kind.rawValue) spoils no answer")
        }
    }

    /// A member that is longer than anybody reads.
    private var padding: [UInt8] {
        Array(#""padding":""#.utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: 2 << 20)
            + Array(#"""#.utf8)
    }

    private func changed(_ good: Answer?, _ change: (inout Answer) -> Void) -> Answer {
        guard var answer = good else {
            preconditionFailure("a fault that changes an answer came before the answer")
        }
        change(&answer)
        return answer
    }

    private func failed(
        _ status: Int, _ message: String, _ fault: Fault, _ request: HTTPRequest
    ) -> Answer {
        var answer = failure(request, status, code: "http.fault", message)
        switch fault.retryAfter {
        case .seconds(let seconds)?: answer.headers.append(("Retry-After", String(seconds)))
        case .date(let seconds)?:
            answer.headers.append(("Retry-After", HTTPDate.text(now + .seconds(seconds))))
        case nil: break
        }
        return answer
    }

    /// The grant in `body` without one of its members; an error body as it is.
    private func without(_ name: String, _ body: [UInt8]) -> [UInt8] {
        body.withUnsafeBytes { bytes in
            guard let root = try? JSONReader.parse(bytes) else { return body }
            var json = JSONWriter(into: [UInt8]())
            copy(root, to: &json, without: name)
            return json.finish()
        }
    }

    private func copy(
        _ value: JSONValue, to json: inout JSONWriter<[UInt8]>, without name: String
    ) {
        switch value.kind {
        case .object:
            json.beginObject()
            for (key, member) in value.members where key != name {
                json.key(key)
                copy(member, to: &json, without: name)
            }
            json.endObject()
        case .array:
            json.beginArray()
            for element in value.elements { copy(element, to: &json, without: name) }
            json.endArray()
        case .string: json.string(value.string ?? "")
        // Our own bodies have whole numbers alone.
        case .number: json.number(value.int ?? 0)
        case .bool: json.bool(value.bool ?? false)
        case .null: json.null()
        }
    }
}
