/// The version of canopyd and of the programs that come with it.
package enum Version {
    package static let text = "0.1.0"
}
