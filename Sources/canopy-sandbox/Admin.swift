internal import AgentCore
internal import LinuxSystem
internal import SandboxRules

/// What tests ask of the sandbox itself, under `/admin`. Not a part of Canopy.
///
/// - `GET /admin/state`: counters, and per family its generation, its end, its presentations;
///   of tokens only the row's id and the first characters.
/// - `GET /admin/counters`: the same without the presentations, which is cheap to ask for often.
/// - `GET`, `POST`, `DELETE /admin/faults`: the queue; `POST` takes one fault or an array, and
///   `DELETE` ends chaos too.
/// - `POST /admin/chaos` `{"seed":N,"permille":M}`: refreshes meet faults by chance.
/// - `POST /admin/release`: lets every held answer go: `{"released":N}`.
/// - `POST /admin/refuse` `{"milliseconds":M}`: connections are refused for so long, the sandbox's
///   own requests too; those that are open go on.
/// - `POST /admin/advance` `{"seconds":S}` or `{"milliseconds":M}`: the sandbox's clock jumps.
/// - `POST /admin/revoke-key` `{"key":"pk_…"}`.
/// - `POST /admin/revoke-identity` `{"email":"…"}`: ends all its sessions.
/// - `POST /admin/set-active` `{"email":"…","active":false}`.
extension Canopy {
    /// Answers a request under `/admin`; `/admin/release` is the loop's, which passes how many.
    mutating func admin(_ request: HTTPRequest, held: Int, released: Int) -> Answer {
        switch (request.method, request.path) {
        case ("GET", "/admin/state"): return state(held: held, withHistory: true)
        case ("GET", "/admin/counters"): return state(held: held, withHistory: false)
        case ("GET", "/admin/faults"): return faultsAnswer()
        case ("DELETE", "/admin/faults"):
            faults.removeAll()
            return faultsAnswer()
        case ("POST", "/admin/release"):
            return object { $0.member("released", Int64(released)) }
        case ("POST", _): break
        default: return complaint(404, "no such admin request: \(request.method) \(request.path)")
        }
        return request.body.withUnsafeBytes { bytes in
            let root: JSONValue
            do throws(JSONFault) {
                root = try JSONReader.parse(bytes)
            } catch {
                return complaint(400, "the body is not JSON: \(error)")
            }
            return admin(request.path, root)
        }
    }

    private mutating func admin(_ path: String, _ body: JSONValue) -> Answer {
        switch path {
        case "/admin/faults":
            do throws(PlannedFault.Unusable) {
                var planned: [PlannedFault] = []
                if body.kind == .array {
                    for element in body.elements { planned.append(try PlannedFault(element)) }
                } else {
                    planned.append(try PlannedFault(body))
                }
                for fault in planned {
                    if let email = fault.email, ledger.identity(email: email) == nil {
                        return complaint(404, "identity: not one of this sandbox's identities")
                    }
                }
                for fault in planned { faults.add(fault) }
                return faultsAnswer()
            } catch {
                return complaint(400, error.text)
            }
        case "/admin/chaos":
            guard let seed = body["seed"]?.int, let permille = body["permille"]?.int,
                let chaos = Chaos(seed: seed, permille: permille)
            else { return complaint(400, "seed: a whole number; permille: one of 0 to 1000") }
            faults.chaos = chaos
            return faultsAnswer()
        case "/admin/refuse":
            guard let milliseconds = body["milliseconds"]?.int, (1...60_000).contains(milliseconds)
            else { return complaint(400, "milliseconds: a whole number of 1 to 60000") }
            refusesUntil = .now + .milliseconds(milliseconds)
            return object { $0.member("refusing", true) }
        case "/admin/advance":
            let span: TimeSpan
            if let seconds = body["seconds"]?.int, (0...3_153_600_000).contains(seconds) {
                span = .seconds(seconds)
            } else if let milliseconds = body["milliseconds"]?.int,
                (0...3_153_600_000_000).contains(milliseconds)
            {
                span = .milliseconds(milliseconds)
            } else {
                return complaint(400, "seconds or milliseconds: a whole number of 0 to 100 years")
            }
            guard span + advance < .seconds(3_153_600_000) else {
                return complaint(400, "the clock would be over 100 years ahead")
            }
            advance(by: span)
            return object { $0.member("now", Timestamp.rfc3339(now)) }
        case "/admin/revoke-key":
            guard let text = body["key"]?.string, let key = key(text) else {
                return complaint(404, "key: not one of this sandbox's keys")
            }
            ledger.revokeKey(key)
            return object { $0.member("revoked", true) }
        case "/admin/revoke-identity":
            guard let identity = body["email"]?.string.flatMap(ledger.identity(email:)) else {
                return complaint(404, "email: not one of this sandbox's identities")
            }
            let count = ledger.revokeAll(of: identity)
            return object { $0.member("revoked_count", Int64(count)) }
        case "/admin/set-active":
            guard let identity = body["email"]?.string.flatMap(ledger.identity(email:)) else {
                return complaint(404, "email: not one of this sandbox's identities")
            }
            guard let active = body["active"]?.bool else {
                return complaint(400, "active: true or false")
            }
            ledger.setActive(identity, active)
            return object { $0.member("active", active) }
        default:
            return complaint(404, "no such admin request: POST \(path)")
        }
    }

    private func state(held: Int, withHistory: Bool) -> Answer {
        object { json in
            json.member("now", Timestamp.rfc3339(now))
            json.member("family_revocations", Int64(ledger.familyRevocations))
            json.member("identity_revocations", Int64(ledger.identityRevocations))
            json.member("held", Int64(held))
            json.key("keys")
            json.beginArray()
            for key in [nativeKey, webKey] {
                json.beginObject()
                json.member("key", key.text)
                json.member("revoked", ledger.isRevoked(key.id))
                json.endObject()
            }
            json.endArray()
            json.key("identities")
            json.beginArray()
            for identity in ledger.allIdentities {
                json.beginObject()
                json.member("email", ledger.email(of: identity))
                json.member("active", ledger.isActive(identity))
                json.member("revocations", Int64(ledger.identityRevocations(of: identity)))
                json.endObject()
            }
            json.endArray()
            json.key("faults")
            faults.write(to: &json)
            json.key("families")
            json.beginArray()
            for family in ledger.allFamilies { write(family, withHistory, to: &json) }
            json.endArray()
        }
    }

    private func write(
        _ family: FamilyID, _ withHistory: Bool, to json: inout JSONWriter<[UInt8]>
    ) {
        let counters = ledger.counters(of: family)
        json.beginObject()
        json.member("number", Int64(family.number))
        json.member("email", ledger.email(of: ledger.identity(of: family)))
        json.member("delivery", ledger.delivery(of: family) == .body ? "body" : "cookie")
        json.member("generation", Int64(ledger.generation(of: family)))
        json.member("alive", ledger.ending(of: family) == nil)
        json.member("ending", ifPresent: ledger.ending(of: family).map { "\($0)" })
        let current = ledger.currentToken(of: family)
        json.member("current", TokenMint.row(current))
        json.member("current_prefix", mint.prefix(of: current))
        json.member("refresh_requests", Int64(counters.refreshRequests))
        json.member("harmless_retries", Int64(counters.harmlessRetries))
        json.member(
            "generations_presented_backwards", Int64(counters.generationsPresentedBackwards))
        json.member("requests_arrived", Int64(counters.arrivals))
        json.member(
            "generations_arrived_backwards", Int64(counters.generationsArrivedBackwards))
        json.member("in_flight", Int64(counters.inFlight))
        json.member("maximum_in_flight", Int64(counters.maximumInFlight))
        if withHistory { writeHistory(family, to: &json) }
        json.endObject()
    }

    private func writeHistory(_ family: FamilyID, to json: inout JSONWriter<[UInt8]>) {
        json.key("arrived")
        json.beginArray()
        for token in ledger.arrivals(of: family) { json.string(TokenMint.row(token)) }
        json.endArray()
        json.key("presented")
        json.beginArray()
        for presentation in ledger.history(of: family) {
            json.beginObject()
            json.member("id", TokenMint.row(presentation.token))
            json.member("prefix", mint.prefix(of: presentation.token))
            json.member("generation", Int64(presentation.generation))
            json.member("at", Timestamp.rfc3339(presentation.at))
            json.member("outcome", word(presentation.outcome))
            json.endObject()
        }
        json.endArray()
    }

    private func word(_ outcome: RefreshOutcome) -> String {
        switch outcome {
        case .rotated: "rotated"
        case .harmlessRetry: "harmless_retry"
        case .familyRevoked: "family_revoked"
        case .identityRevoked: "identity_revoked"
        case .refused(.unknown): "unknown"
        case .refused(.ended): "ended"
        case .refused(.expired): "expired"
        case .refused(.identityInactive): "identity_inactive"
        }
    }

    private func faultsAnswer() -> Answer {
        object { json in
            json.key("faults")
            faults.write(to: &json)
            if let chaos = faults.chaos {
                json.key("chaos")
                chaos.write(to: &json)
            }
        }
    }

    private func complaint(_ status: Int, _ text: String) -> Answer {
        var answer = object { $0.member("error", text) }
        answer.status = status
        return answer
    }

    private func object(_ members: (inout JSONWriter<[UInt8]>) -> Void) -> Answer {
        var json = JSONWriter(into: [UInt8]())
        json.beginObject()
        members(&json)
        json.endObject()
        return Answer(200, json: json.finish())
    }
}
