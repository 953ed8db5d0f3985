internal import AgentCore
internal import Glibc
internal import Synchronization

/// The end of an exchange whose call into a C library does not even return when it is cancelled: a
/// bus that accepts and never answers holds GDBus in its authentication for ever.
enum Hopeless {
    /// What is told canopyd then, ready to be sent from another thread: it must not wait for the
    /// thread that hangs.
    private static let lastWords = Mutex<(Channel, [Report])?>(nil)

    /// From now on, ending tells that the keyring does not answer, for each of `profiles`.
    static func prepare(_ channel: Channel, for profiles: [ProfileName]) {
        let failure = Failure(
            .keyringUnavailable, "the message bus accepts connections and does not answer")
        let reports = profiles.map { Report.ended($0, .failed(failure)) }
        lastWords.withLock { $0 = (channel, reports) }
    }

    /// Once the token may be spent, an end without a word is the true one: canopyd asks again.
    static func forget() {
        lastWords.withLock { $0 = nil }
    }

    /// Sends the last words and ends the process; called on the deadline's thread.
    static let end: @convention(c) () -> Void = {
        lastWords.withLock { words in
            if let (channel, reports) = words {
                for report in reports { channel.send(report) }
            }
        }
        _exit(EX_UNAVAILABLE)
    }
}
