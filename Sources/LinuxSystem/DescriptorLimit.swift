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

        /// Who can raise the limit: it is the hard one, and nobody without privileges raises his own.
        package static let remedy =
            "that is the hard limit, which only whoever set it can raise: a shell with ulimit -n "
            + "(start another), LimitNOFILE= of a unit or of user@.service, or limits.conf(5)"
    }
}
