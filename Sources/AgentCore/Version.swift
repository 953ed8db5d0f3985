/// The version of everything that is built from this package.
package enum Version {
    /// As semantic versioning has it.
    package static let text = "0.1.0"
}
