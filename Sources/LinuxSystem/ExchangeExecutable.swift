internal import CLinux
internal import Glibc

/// Where the program is that does exchanges (INTERFACE, "Paths").
package enum ExchangeExecutable {
    /// Beside the program that asks, else in `../libexec/canopyd/` from it; throws if it is in neither place.
    package static func find() throws(Missing) -> String {
        let own = ownPath()
        let directory = own.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(own[..<$0]) } ?? "."
        let places = [
            "\(directory)/canopyd-exchange", "\(directory)/../libexec/canopyd/canopyd-exchange",
        ]
        for place in places where access(place, X_OK) == 0 { return place }
        throw Missing(places: places)
    }

    /// The path of the running program; a name without a directory if /proc is not mounted.
    private static func ownPath() -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress,
                case let count = readlink("/proc/self/exe", start, buffer.count), count > 0
            else { return ProgramArguments.all.first ?? "" }
            return buffer[..<count].withMemoryRebound(to: UInt8.self) {
                String(decoding: $0, as: UTF8.self)
            }
        }
    }

    package struct Missing: Error, CustomStringConvertible {
        package let places: [String]

        package var description: String {
            "canopyd-exchange is neither \(places.joined(separator: " nor ")); install canopyd again"
        }
    }
}
