internal import CLinux
internal import Glibc

/// A failed system call: which one, on what, and why.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The call's name, as its manual page has it.
    package let call: StaticCall

    /// The kernel's reason (`errno`).
    package let code: Int32

    /// The path or object, where there is one.
    package let subject: String?

    package init(_ call: StaticCall, code: Int32, subject: String? = nil) {
        self.call = call
        self.code = code
        self.subject = subject
    }

    /// Takes `errno` as the failed call left it; to be made right after the call.
    package static func last(_ call: StaticCall, _ subject: String? = nil) -> SystemError {
        SystemError(call, code: errno, subject: subject)
    }

    /// The name of a system call; a type so that no secret can be put in its place.
    package struct StaticCall: Equatable, Sendable, ExpressibleByStringLiteral {
        package let name: String

        package init(stringLiteral name: String) {
            self.name = name
        }
    }

    package var description: String {
        var reason = String(cString: strerror(code))
        if code == EMFILE {
            reason += ", of which \(DescriptorLimit.current) may be open (ulimit -n, LimitNOFILE=)"
        }
        guard let subject else { return "\(call.name): \(reason)" }
        return "\(subject): \(call.name): \(reason)"
    }
}
