import Foundation

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

extension Duration {
    /// The time within which users are promised something; longer under a sanitizer, and as much longer
    /// as there are programs for each processor.
    static func promised(_ time: Duration) -> Duration {
        time * Sanitizer.slowness * Machine.crowding
    }
}
