/// The last few requests for a token, byte for byte, and what they ask for.
///
/// Programs ask again and again in the same words, and what bytes ask for depends on nothing but the
/// bytes: finding them here saves parsing and routing them, most of what an answer from memory costs.
/// Only requests are kept whose answer keeps the connection and is a token object.
package struct RecentRequests: ~Copyable {
    /// What a request asks for.
    package struct Wish: Equatable, Sendable {
        package let profile: ProfileName
        package let minimumValidity: TimeSpan?
    }

    private struct Entry {
        /// All of the request: clients send what they like in their headers, so it is a secret.
        let bytes: Secret
        let wish: Wish
    }

    /// By the request's length: programs that ask differently rarely ask equally long.
    private var entries: [Entry?]
    private let memory: SecretMemory

    /// Keeps what it remembers in `memory`.
    package init(in memory: SecretMemory) {
        self.memory = memory
        entries = Array(repeating: nil, count: Limits.recentRequests)
    }

    /// What the request is known to ask for; nil if it is not known.
    package func wish(of bytes: UnsafeRawBufferPointer) -> Wish? {
        guard let entry = entries[bytes.count % Limits.recentRequests],
            entry.bytes.count == bytes.count, entry.bytes.withBytes({ same($0, bytes) })
        else { return nil }
        return entry.wish
    }

    /// Remembers a request that was parsed out of `bytes`, if it is of the kind that is kept.
    package mutating func remember(
        _ route: Route, of head: RequestHead, _ bytes: UnsafeRawBufferPointer
    ) {
        guard case .token(let profile, let validity, _, asText: false) = route,
            head.method == .get, head.keepAlive, head.contentLength == 0,
            bytes.count <= Limits.recentRequestBytes
        else { return }
        entries[bytes.count % Limits.recentRequests] = Entry(
            bytes: Secret(copying: bytes, in: memory),
            wish: Wish(profile: profile, minimumValidity: validity))
    }
}

/// Compares eight bytes at a time; there is no call of the C library in the core.
private func same(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    guard one.count == other.count else { return false }
    var place = 0
    while place + 8 <= one.count {
        guard
            one.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                == other.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        else { return false }
        place += 8
    }
    while place < one.count {
        guard one[place] == other[place] else { return false }
        place += 1
    }
    return true
}
