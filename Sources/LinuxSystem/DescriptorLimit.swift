internal import AgentCore
internal import CLinux
internal import Glibc

/// How many descriptors this process may have.
package enum DescriptorLimit {
    /// The soft limit.
    package static var current: Int { Int(clamping: limits.rlim_cur) }

    private static var limits: rlimit {
        var limits = rlimit()
        // Cannot fail: the resource exists and the pointer is good.
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
        return limits
    }

    /// Raises the soft limit to the hard one; returns what is wrong where that does not suffice either.
    ///
    /// With fewer, libraries that are out of our hands give up in the middle: GLib ends the process.
    package static func raise() throws(SystemError) -> Shortage? {
        var limits = limits
        limits.rlim_cur = limits.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else {
            throw .last("setrlimit", "RLIMIT_NOFILE")
        }
        return current < Limits.descriptorsLeast ? Shortage(limit: current) : nil
    }

    /// Too few for any work.
    package struct Shortage: Error, Equatable, Sendable, CustomStringConvertible {
        package let limit: Int

        package var description: String {
            "only \(limit) files may be open at a time, and \(Limits.descriptorsLeast) are needed"
        }

        /// What raises the limit, for the shell or the unit that set it.
        package static let remedy =
            "raise the hard limit: ulimit -n 1024, or LimitNOFILE=1024 in a unit"
    }
}
