internal import CArguments

/// What this program was started with, its own name first.
///
/// Not Swift's `CommandLine`: see `CArguments`.
package enum ProgramArguments {
    package static var count: Int32 { carguments_count() }

    /// As getopt(3) wants them, which may put them in another order.
    package static var vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> {
        guard let vector = carguments_vector() else {
            preconditionFailure("glibc started a program without arguments")
        }
        return vector
    }

    /// All of them.
    package static var all: [String] {
        (0..<Int(count)).compactMap { vector[$0].map { String(cString: $0) } }
    }
}
