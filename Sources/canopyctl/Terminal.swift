internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// The terminal that the user sits at, whatever standard input and output are.
final class Terminal {
    private let descriptor: Int32

    /// nil where there is none: in a service, a pipeline without a session, a container.
    init?() {
        descriptor = clinux_open("/dev/tty", O_RDWR | O_NOCTTY, 0)
        guard descriptor >= 0 else { return nil }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Shows `text` and a newline.
    func say(_ text: String) throws(Complaint) {
        try write(text + "\n")
    }

    /// Asks for a line that may be seen, without spaces at its ends.
    func ask(_ prompt: String) throws(Complaint) -> String {
        let line = try askLine(prompt, hidden: false)
        return line.withBytes { bytes in
            let visible = bytes.drop { $0 == 0x20 || $0 == 0x09 }
            let end = visible.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { $0 + 1 }
            return String(
                decoding: visible[visible.startIndex..<(end ?? visible.startIndex)],
                as: UTF8.self)
        }
    }

    /// Asks for a secret, with echo off.
    func askSecret(_ prompt: String, _ what: String) throws(Complaint) -> Secret {
        let secret = try askLine(prompt, hidden: true)
        guard secret.count > 0 else { throw .usage("no \(what) was entered", command: Login.name) }
        return try secret.checkedAsText(what)
    }

    /// One line, straight into locked memory.
    private func askLine(_ prompt: String, hidden: Bool) throws(Complaint) -> Secret {
        var failure: Complaint?
        var isEnd = false
        // In canonical mode one read gives one line, of at most the kernel's 4096 bytes.
        let line = Secret(capacity: Limits.passwordBytes, in: .locked) { target in
            do throws(Complaint) {
                let count = try readLine(prompt, hidden: hidden, into: target)
                isEnd = count == 0
                return count > 0 && target[count - 1] == UInt8(ascii: "\n") ? count - 1 : count
            } catch {
                failure = error
                return 0
            }
        }
        if let failure { throw failure }
        guard !isEnd else {
            try write("\n")
            throw Complaint(.failure, "the sign-in was given up")
        }
        return line
    }

    /// Waits for a line and for signals at once, so that whatever ends or stops the program finds
    /// the echo restored.
    private func readLine(
        _ prompt: String, hidden: Bool, into target: UnsafeMutableRawBufferPointer
    ) throws(Complaint) -> Int {
        while true {
            let signals = try BlockedSignals()
            // Before the prompt: whoever answers at once is not to be seen either.
            let echo = hidden ? EchoOff(descriptor) : nil
            let event: Int32?
            do throws(Complaint) {
                try write(prompt)
                event = try signals.wait(orReadable: descriptor)
            } catch {
                echo?.restore()
                signals.unblock()
                throw error
            }
            var count = 0
            if event == nil { count = read(descriptor, target.baseAddress, target.count) }
            let failure = SystemError.last("read", "/dev/tty")
            echo?.restore()
            if hidden { try write("\n") }
            signals.unblock()
            if let event {
                // Ends or stops the program as if it had never been blocked. Whoever comes back,
                // from a stop or because the signal is ignored, is asked again.
                raise(event)
                continue
            }
            if count >= 0 { return count }
            guard failure.code == EINTR else {
                throw Complaint(.failure, "the terminal cannot be read", detail: "\(failure)")
            }
        }
    }

    private func write(_ text: String) throws(Complaint) {
        var text = text
        let failure: SystemError? = text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let written = CLinux.write(descriptor, rest.baseAddress, rest.count)
                if written < 0 {
                    let failure = SystemError.last("write", "/dev/tty")
                    if failure.code == EINTR { continue }
                    return failure
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[written...])
            }
            return nil
        }
        if let failure {
            throw Complaint(.failure, "the terminal cannot be written to", detail: "\(failure)")
        }
    }
}

/// A terminal whose echo is off until it is restored.
private struct EchoOff {
    private let descriptor: Int32
    private let before: termios

    /// nil if the terminal has no such settings.
    init?(_ descriptor: Int32) {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { return nil }
        self.descriptor = descriptor
        before = settings
        settings.c_lflag &= ~tcflag_t(ECHO | ECHONL)
        settings.c_lflag |= tcflag_t(ICANON | ISIG)
        // What was typed ahead was echoed, and is not the secret.
        guard tcsetattr(descriptor, TCSAFLUSH, &settings) == 0 else { return nil }
    }

    func restore() {
        var settings = before
        tcsetattr(descriptor, TCSANOW, &settings)
    }
}

/// The signals that a terminal or a session sends, held back and read from a descriptor.
private struct BlockedSignals: ~Copyable {
    private let descriptor: Int32
    private let before: sigset_t

    init() throws(Complaint) {
        var blocked = sigset_t()
        var before = sigset_t()
        sigemptyset(&blocked)
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP] { sigaddset(&blocked, number) }
        sigprocmask(SIG_BLOCK, &blocked, &before)
        self.before = before
        descriptor = clinux_signalfd(&blocked)
        guard descriptor >= 0 else {
            let failure = SystemError.last("signalfd")
            sigprocmask(SIG_SETMASK, &before, nil)
            throw Complaint(.failure, "the terminal cannot be read", detail: "\(failure)")
        }
    }

    /// The signal that came, or nil once there is something to read at `other`.
    func wait(orReadable other: Int32) throws(Complaint) -> Int32? {
        while true {
            var entries = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            let ready = poll(&entries, 2, -1)
            guard ready >= 0 else {
                let failure = SystemError.last("poll", "/dev/tty")
                if failure.code == EINTR { continue }
                throw Complaint(.failure, "the terminal cannot be read", detail: "\(failure)")
            }
            if entries[0].revents != 0 {
                // struct signalfd_siginfo: 128 bytes, of which the first four are the number.
                let number = withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) {
                    read(descriptor, $0.baseAddress, 128) == 128 ? $0.load(as: Int32.self) : 0
                }
                if number > 0 { return number }
            }
            if entries[1].revents != 0 { return nil }
        }
    }

    func unblock() {
        var before = before
        sigprocmask(SIG_SETMASK, &before, nil)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }
}
