internal import CLinux
internal import Glibc

/// Standard output, on descriptor 1.
package enum StandardOutput {
    /// Writes all of `bytes`.
    ///
    /// Where the reader has gone the process ends: ``endWithReader()``. Any other failure is thrown, so
    /// that what was written in part counts for nothing.
    package static func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var rest = bytes
        while !rest.isEmpty {
            let written = Glibc.write(STDOUT_FILENO, rest.baseAddress, rest.count)
            if written < 0 {
                let failure = SystemError.last("write", "standard output")
                if failure.code == EINTR { continue }
                if failure.code == EPIPE { endWithReader() }
                throw failure
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
    }

    /// Writes the text.
    package static func write(_ text: String) throws(SystemError) {
        var text = text
        let written = text.withUTF8 { bytes in
            Result { () throws(SystemError) in try write(UnsafeRawBufferPointer(bytes)) }
        }
        try written.get()
    }

    /// Whether it is a pipe or a socket, whose other end may be closed.
    ///
    /// A terminal that goes tells of it by a signal.
    package static var canLoseReader: Bool {
        var status = stat()
        return fstat(STDOUT_FILENO, &status) == 0
            && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
    }

    /// Whether nobody can read what is written from now on.
    package static var readerHasGone: Bool {
        guard canLoseReader else { return false }
        var entry = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0 && Int32(entry.revents) & (POLLERR | POLLHUP) != 0
    }

    /// Ends the process as a pipeline ends its other programs: by SIGPIPE, without a word.
    ///
    /// That nobody reads on is no news, but no success either: the reader may have got half. A shell
    /// calls it 141; git does the same, where SIGPIPE was ignored by whoever started us too.
    package static func endWithReader() -> Never {
        signal(SIGPIPE, SIG_DFL)
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        sigprocmask(SIG_UNBLOCK, &pipe, nil)
        raise(SIGPIPE)
        // The first process of a namespace ends by no signal of its own.
        _exit(128 + SIGPIPE)
    }
}
