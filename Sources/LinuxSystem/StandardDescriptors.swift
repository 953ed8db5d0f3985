internal import CLinux
internal import Glibc

/// Descriptors 0 to 2, which whoever starts us may have closed.
package enum StandardDescriptors {
    /// Opens those that are closed, so that none of ours gets their number: what is meant for standard
    /// output would be written into the socket to canopyd, and count as read.
    ///
    /// Nothing can be read from them or written to them, and a child finds them closed as we did.
    package static func fill() {
        // One call for the three, which every command pays; it fails where fewer may be open.
        withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 3) { entries in
            for index in 0..<3 {
                entries[index] = pollfd(fd: Int32(index), events: 0, revents: 0)
            }
            guard poll(entries.baseAddress, 3, 0) > 0 else { return }
            for entry in entries where Int32(entry.revents) & POLLNVAL != 0 { fill(entry.fd) }
        }
    }

    private static func fill(_ number: Int32) {
        let flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY
        // The lowest that is free is this one. Where there is no /dev/null, nothing can be done.
        let opened = clinux_open("/dev/null", flags, 0)
        if opened >= 0, opened != number { close(opened) }
    }
}
