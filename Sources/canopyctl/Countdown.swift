internal import AgentCore
internal import LinuxSystem

/// How far away a time is, in words.
enum Countdown {
    /// `45 s`, `12 min`, `3 h 5 min`, `2 d 4 h`; negative counts as 0.
    static func words(seconds: Int64) -> String {
        let seconds = max(0, seconds)
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h \(seconds / 60 % 60) min"
        default: return "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
        }
    }

    /// Seconds from now to the time that `text` is in RFC 3339; nil if it is none.
    static func seconds(to text: String?) -> Int64? {
        guard let text, let time = Timestamp.wallTime(rfc3339: text) else { return nil }
        return (time - .now).wholeSeconds
    }
}
