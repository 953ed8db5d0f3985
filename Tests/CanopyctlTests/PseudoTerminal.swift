import CLinux
import Glibc
import Testing

/// A terminal whose other end is the test.
final class PseudoTerminal {
    private let master: Int32
    private let name: String
    private var unread = ""

    /// All that the terminal has shown so far, echo included.
    private(set) var shown = ""

    init() throws {
        master = clinux_open("/dev/ptmx", O_RDWR | O_NOCTTY, 0)
        try #require(master >= 0)
        // TIOCSPTLCK and TIOCGPTN, which is what unlockpt and ptsname do.
        var locked: Int32 = 0
        var number: Int32 = 0
        try #require(ioctl(master, 0x4004_5431, &locked) == 0)
        try #require(ioctl(master, 0x8004_5430, &number) == 0)
        name = "/dev/pts/\(number)"
    }

    deinit {
        close(master)
    }

    /// Starts a program whose standard streams and controlling terminal this is.
    func spawn(_ arguments: [String], _ environment: [String: String]) throws -> pid_t {
        let pid = try Canopyctl.spawn(arguments, environment) { actions in
            // The first terminal that a session's leader opens becomes its own.
            posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
            posix_spawn_file_actions_adddup2(&actions, 0, 1)
            posix_spawn_file_actions_adddup2(&actions, 0, 2)
        }
        return pid
    }

    /// Reads until `text` has been shown, counted from the end of the last expected one.
    func expect(_ text: String) throws {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            if let range = unread.firstRange(of: text) {
                unread = String(unread[range.upperBound...])
                return
            }
            var entry = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
            // 20 s, so that a prompt that never comes fails instead of hanging.
            try #require(poll(&entry, 1, 20_000) == 1, "\(text) was not shown")
            let count = read(master, &buffer, buffer.count)
            try #require(count > 0, "the terminal was closed before \(text)")
            let more = String(decoding: buffer[..<count], as: UTF8.self)
            shown += more
            unread += more
        }
    }

    func type(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(write(master, bytes, bytes.count) == bytes.count)
    }

    /// Whether what is typed is shown.
    var echoes: Bool {
        var settings = termios()
        tcgetattr(master, &settings)
        return settings.c_lflag & tcflag_t(ECHO) != 0
    }
}
