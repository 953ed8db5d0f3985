internal import AgentCore
internal import LinuxSystem

/// Questions that the server answers for an access token.
///
/// They touch neither keyring nor refresh token.
enum Queries {
    /// `identity`: the fields of INTERFACE and the names, where the server sends them.
    static func identity(_ answer: CanopyAnswer, memory: SecretMemory) -> ExchangeOutcome {
        document(answer, memory: memory) { body, writer in
            guard let resource = body.resource, let id = resource["id"]?.string else {
                return false
            }
            writer.beginObject()
            writer.member("id", id)
            for key in ["email", "first_name", "last_name", "created_at"] as [StaticString] {
                writer.member(key, ifPresent: resource[key]?.string)
            }
            writer.member("email_verified", ifPresent: resource["email_verified"]?.bool)
            writer.endObject()
            return true
        }
    }

    /// `sessions`: every field but `id` optional, in whatever envelope the list comes.
    static func sessions(_ answer: CanopyAnswer, memory: SecretMemory) -> ExchangeOutcome {
        document(answer, memory: memory) { body, writer in
            guard let rows = body.list else { return false }
            writer.beginObject()
            writer.key("sessions")
            writer.beginArray()
            for row in rows.elements {
                guard let id = row["id"]?.string else { continue }
                writer.beginObject()
                writer.member("id", id)
                for key in ["created_at", "expires_at", "ip_address", "user_agent"]
                    as [StaticString]
                {
                    writer.member(key, ifPresent: row[key]?.string)
                }
                writer.endObject()
            }
            writer.endArray()
            writer.endObject()
            return true
        }
    }

    /// The outcome of a request whose success has nothing to say.
    static func nothing(_ answer: CanopyAnswer, memory: SecretMemory) -> ExchangeOutcome {
        document(answer, memory: memory) { _, _ in true }
    }

    /// What failed, of an answer whose success has nothing to say; nil for success.
    static func failure(_ answer: CanopyAnswer) -> Failure? {
        guard !(200..<300).contains(answer.status) else { return nil }
        return answer.body.withBytes { failure(answer, CanopyBody($0, of: answer)) }
    }

    private static func document(
        _ answer: CanopyAnswer, memory: SecretMemory,
        _ render: (CanopyBody, inout JSONWriter<SecretBuffer>) -> Bool
    ) -> ExchangeOutcome {
        answer.body.withBytes { bytes in
            let body = CanopyBody(bytes, of: answer)
            if (200..<300).contains(answer.status) {
                var writer = JSONWriter(into: SecretBuffer(in: memory))
                guard render(body, &writer) else {
                    return .failed(
                        Failure(
                            .serverError,
                            "the server answered \(answer.status) with a body that is not Canopy's"
                        ))
                }
                return .document(writer.finish().secret())
            }
            if answer.status == 401, body.isEnvelope {
                return .tokenRefused("\(body.words ?? "HTTP status 401") (401)")
            }
            return .failed(failure(answer, body))
        }
    }

    private static func failure(_ answer: CanopyAnswer, _ body: CanopyBody) -> Failure {
        let words = body.words ?? "HTTP status \(answer.status)"
        switch answer.status {
        case 429:
            return Failure(.throttled, words, wait: answer.waitTold(at: .now))
        case 400..<500 where body.isEnvelope:
            return Failure(.refused, "\(words) (\(answer.status))")
        case 408, 500..<600:
            return Failure(.serverError, "the server answered \(answer.status): \(words)")
        default:
            return Failure(
                .somebodyInBetween,
                "HTTP status \(answer.status) that is not Canopy's: captive portal or proxy?")
        }
    }
}
