/// A token object as JSON with a gap where `expires_in` goes: rendered once per token, and sent
/// as often as it is asked for without another copy of the secret.
package struct RenderedToken: Sendable {
    /// From the opening brace to the colon before the seconds.
    package let beforeSeconds: Secret

    /// From the comma after the seconds to the closing brace.
    package let afterSeconds: [UInt8]

    /// Renders `view`, whose `remaining` is left out, into `memory`.
    package init(_ view: TokenView, in memory: SecretMemory) {
        var before = JSONWriter(
            into: SecretBuffer(capacity: view.token.value.count + 512, in: memory))
        before.beginObject()
        before.member("profile", view.profile.text)
        before.member("access_token", view.token.value)
        before.member("token_type", view.token.type)
        before.member("expires_at", Timestamp.rfc3339(view.token.life.expiresAt))
        before.endObject()
        beforeSeconds = before.finish().withBytes { whole in
            // The brace at the end makes room for the member that is written anew each time.
            let key: StaticString = #","expires_in":"#
            return Secret(capacity: whole.count - 1 + key.utf8CodeUnitCount, in: memory) { target in
                target.copyMemory(from: UnsafeRawBufferPointer(rebasing: whole.dropLast()))
                UnsafeMutableRawBufferPointer(rebasing: target[(whole.count - 1)...]).copyMemory(
                    from: UnsafeRawBufferPointer(
                        start: key.utf8Start, count: key.utf8CodeUnitCount))
                return target.count
            }
        }
        var after = JSONWriter(into: [UInt8]())
        after.beginObject()
        after.member("refresh_at", Timestamp.rfc3339(view.refreshAt))
        after.member("generation", view.generation)
        after.key("identity")
        after.write(view.identity)
        after.endObject()
        var bytes = after.finish()
        bytes[0] = UInt8(ascii: ",")
        afterSeconds = bytes
    }
}
