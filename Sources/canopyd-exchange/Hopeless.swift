internal import AgentCore
internal import Glibc
internal import Synchronization

/// The end of an exchange whose call into a C library does not even return when it is cancelled: a
/// bus that accepts and never answers holds GDBus in its authentication for ever.
enum Hopeless {
    /// What is told canopyd then, ready to be sent from another thread: it must not wait for the
    /// thread that hangs.
    private static let lastWords = Mutex<LastWords?>(nil)

    private struct LastWords {
        let channel: Channel
        var reports: [Report]
        var holdsSuccessor = false
    }

    /// From now on, ending tells that the keyring does not answer, for each of `profiles`.
    static func prepare(_ channel: Channel, for profiles: [ProfileName]) {
        let failure = Failure(
            .keyringUnavailable, "the message bus accepts connections and does not answer")
        let reports = profiles.map { Report.ended($0, .failed(failure)) }
        lastWords.withLock { $0 = LastWords(channel: channel, reports: reports) }
    }

    /// Once the token may be spent, an end without a word is the true one: canopyd asks again.
    static func forget() {
        lastWords.withLock {
            $0?.reports = []
            $0?.holdsSuccessor = true
        }
    }

    /// A successor was found in the slot: without canopyd, this process is the only one to store it.
    static func holdSuccessor() {
        lastWords.withLock { $0?.holdsSuccessor = true }
    }

    /// Sends the last words and ends the process; called on the deadline's thread.
    ///
    /// A process that holds the only successor goes on waiting for the bus.
    static let end: @convention(c) () -> Void = {
        lastWords.withLock { words in
            if let words {
                guard words.channel.isHeard || !words.holdsSuccessor else { return }
                for report in words.reports { words.channel.send(report) }
            }
            _exit(EX_UNAVAILABLE)
        }
    }
}
