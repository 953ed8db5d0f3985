/// How many descriptors the service manager keeps for canopyd, as far as it says.
///
/// systemd acknowledges none that it is given, and drops without a word what is too many. From 254 on it
/// says in `$FDSTORE` how many it keeps, and where it keeps none it leaves the variable out.
package enum DescriptorAllowance: Equatable, Sendable {
    case atMost(Int)

    /// It does not say: an earlier systemd, or another manager, is believed to keep all.
    case unknown

    /// The first systemd that says.
    private static let sayingSince = 254

    /// `told` is `$FDSTORE`; `systemd` the major version of the systemd that started this very process,
    /// nil where another one did or nobody knows.
    package init(told: String?, systemd: Int?) {
        if let told, let most = Int(told), most >= 0 {
            self = .atMost(most)
        } else if let systemd, systemd >= DescriptorAllowance.sayingSince {
            self = .atMost(0)
        } else {
            self = .unknown
        }
    }

    /// Whether one more is kept besides `count`.
    package func permitsOneMore(than count: Int) -> Bool {
        switch self {
        case .atMost(let most): count < most
        case .unknown: true
        }
    }

    /// Whether a canopyd that ends takes a profile's slot back from the service manager, which keeps it or not.
    ///
    /// A manager of systemd 254 to 256 starts no stopped service for whoever comes to its socket while its
    /// store keeps anything (systemd's pull request 33874, in 257). A successor is worth that, an empty slot is not.
    package static func isTakenBack(isKept: Bool, isFull: Bool) -> Bool {
        isKept && !isFull
    }
}
