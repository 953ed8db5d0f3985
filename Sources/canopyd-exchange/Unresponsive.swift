internal import AgentCore
internal import Glibc
internal import Synchronization

/// What is done about a keyring that does not answer, from the thread that watches the clock while
/// another one waits in a C library.
enum Unresponsive {
    /// What is told canopyd, ready to be sent: the thread that hangs must not be waited for.
    private struct Words {
        var channel: Channel?
        /// When the process has to be given up.
        var last: [Report] = []
        /// When a call takes long; nil where nobody would listen.
        var slow: Failure?
        var holdsSuccessor = false
    }

    private static let words = Mutex(Words())

    /// From now on, ending tells that the keyring does not answer, for each of `profiles`.
    static func prepare(_ channel: Channel, for profiles: [ProfileName]) {
        let failure = Failure(
            .keyringUnavailable, "the message bus accepts connections and does not answer",
            remedy: .examination)
        let reports = profiles.map { Report.ended($0, .failed(failure)) }
        words.withLock { $0 = Words(channel: channel, last: reports) }
    }

    /// Once the token may be spent, an end without a word is the true one: canopyd asks again.
    static func forgetLastWords() {
        words.withLock {
            $0.last = []
            $0.holdsSuccessor = true
        }
    }

    /// A successor was found in the slot: without canopyd, this process is the only one to store it.
    static func holdSuccessor() {
        words.withLock { $0.holdsSuccessor = true }
    }

    /// From now on a call that takes long is told of, as this failure.
    static func tellOfSlowness(as failure: Failure) {
        words.withLock { $0.slow = failure }
    }

    /// Called when a call has taken long, while it goes on.
    ///
    /// The other thread is in that call, so that the channel is not written by both.
    static let tell: @convention(c) () -> Void = {
        words.withLock { words in
            guard let channel = words.channel, let failure = words.slow else { return }
            channel.send(.progress(.retrying(failure)))
        }
    }

    /// Called when a call does not even return when it is cancelled, as with a bus that accepts and
    /// never answers, which holds GDBus in its authentication for ever: ends the process.
    ///
    /// A process that holds the only successor goes on waiting for the bus.
    static let end: @convention(c) () -> Void = {
        words.withLock { words in
            if let channel = words.channel {
                guard channel.isHeard || !words.holdsSuccessor else { return }
                for report in words.last { channel.send(report) }
            }
            _exit(EX_UNAVAILABLE)
        }
    }
}
