import Foundation
import Synchronization

/// How busy the machine is that the tests run on: a promise of time is one of a machine that has some.
enum Machine {
    /// How many programs want to run for each processor, of late or now; 1 at the least.
    static var crowding: Double {
        guard let text = try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8) else {
            return 1
        }
        // The load of the last minute, of five and of fifteen, and RUNNING/ALL.
        let fields = text.split { $0 == " " || $0 == "/" }
        guard fields.count > 3, let load = Double(fields[0]), let running = Double(fields[3]) else {
            return 1
        }
        return max(1, max(load, running) / Double(ProcessInfo.processInfo.activeProcessorCount))
    }
}

/// How long the machine, or this process, stood still of late: a thread that sleeps a moment, and sees
/// how much later it wakes up.
///
/// Each canopyd that a test starts sees to it that the thread runs.
final class StallMeter: Sendable {
    static let shared = StallMeter()

    /// What counts as standing still, and not as being woken up late.
    private static let moment = Duration.milliseconds(50)

    /// What is longer ago was before anything that is measured now.
    private static let memory = Duration.seconds(60)

    private let stalls = Mutex<[(end: ContinuousClock.Instant, length: Duration)]>([])

    private init() {
        Thread.detachNewThread { [unowned self] in
            while true {
                let start = ContinuousClock.now
                usleep(50_000)
                let end = ContinuousClock.now
                let late = end - start - Self.moment
                guard late > Self.moment else { continue }
                stalls.withLock { stalls in
                    stalls.removeAll { end - $0.end > Self.memory }
                    stalls.append((end, late))
                }
            }
        }
    }

    /// The sum of the last minute.
    var ofLate: Duration {
        let now = ContinuousClock.now
        return stalls.withLock { stalls in
            stalls.reduce(.zero) { now - $1.end > Self.memory ? $0 : $0 + $1.length }
        }
    }
}

extension Duration {
    /// The time within which users are promised something; longer under a sanitizer, and as much longer
    /// as there are programs for each processor, and as the machine has stood still.
    static func promised(_ time: Duration) -> Duration {
        time * Sanitizer.slowness * Machine.crowding + StallMeter.shared.ofLate
    }
}
