internal import CLinux
internal import Glibc

/// Descriptors 0 to 2, which whoever starts us may have closed.
package enum StandardDescriptors {
    /// Opens those that are closed, so that none of ours gets their number: what is meant for standard
    /// output would be written into the socket to canopyd, and count as read.
    ///
    /// Nothing can be read from them or written to them, and a child finds them closed as we did.
    package static func fill() {
        for number in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
        where clinux_fcntl_get_flags(number) < 0 && errno == EBADF {
            let flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY
            // The lowest that is free is this one. Where there is no /dev/null, nothing can be done.
            let opened = clinux_open("/dev/null", flags, 0)
            if opened >= 0, opened != number { close(opened) }
        }
    }
}
