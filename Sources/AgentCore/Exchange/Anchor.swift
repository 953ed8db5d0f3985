/// The identity of the state directory itself: inode and birth time of a file that is created once.
///
/// Both change when the directory comes back from a backup or is copied to another machine.
package struct Anchor: Equatable, Hashable, Sendable {
    package let inode: UInt64

    /// Nanoseconds since 1970 by the file system's clock; 0 where it keeps no birth times.
    package let birth: Int64

    package init(inode: UInt64, birth: Int64) {
        self.inode = inode
        self.birth = birth
    }
}
