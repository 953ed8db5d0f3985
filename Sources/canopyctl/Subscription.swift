internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// A subscription to a profile's events that is made again when canopyd goes and comes back.
final class Subscription {
    /// What a while of waiting brought.
    enum News {
        case events([EventReader.Event])
        /// canopyd has gone; it is looked for from now on.
        case lost(Complaint)
        case nothing
    }

    private let client: Client
    private let profile: ProfileName
    private var reader: EventReader?
    private var retryAt = BootTime.now
    private var wait = Subscription.firstWait

    /// canopyd is back in less, where it is only started anew.
    private static let firstWait = TimeSpan.milliseconds(Limits.subscriptionFirstRetryMilliseconds)

    /// Subscribes at once; throws if that fails, for there is nothing to come back to.
    init(_ profile: ProfileName) throws(Complaint) {
        client = try Client()
        self.profile = profile
        reader = try client.subscribe(profile, seconds: Limits.requestTimeoutSeconds)
    }

    /// What poll(2) is to wait for; -1 while there is no connection.
    var descriptor: Int32 {
        switch reader {
        case .some(let reader): reader.descriptor
        case .none: -1
        }
    }

    /// When ``advance()`` has something to do, whatever comes.
    var deadline: BootTime {
        switch reader {
        case .some(let reader):
            reader.isUnread
                ? .now : reader.lastByte + .seconds(Int64(Limits.eventSilenceSeconds))
        case .none: retryAt
        }
    }

    /// Reads what has come, or subscribes again if it is time.
    func advance() -> News {
        guard reader != nil else { return subscribeAgain() }
        do throws(Complaint) {
            let events = try reader?.next() ?? []
            guard deadline > .now else {
                throw Complaint(.timeout, "canopyd has fallen silent")
            }
            return .events(events)
        } catch {
            reader = nil
            retryAt = .now + wait
            return .lost(error)
        }
    }

    private func subscribeAgain() -> News {
        guard retryAt <= .now else { return .nothing }
        do throws(Complaint) {
            reader = try client.subscribe(profile, seconds: Limits.clientGraceSeconds)
            wait = Subscription.firstWait
            return .events([])
        } catch {
            // It is told of at the loss, and what it is now is seen once it is back.
            retryAt = .now + wait
            wait = min(wait + wait, .seconds(Int64(Limits.subscriptionRetrySeconds)))
            return .nothing
        }
    }
}
