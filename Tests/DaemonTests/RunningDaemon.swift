import CLinux
import Dispatch
import Foundation
import Glibc
import Testing

/// The built canopyd, serving from a runtime directory of its own; without a keyring unless
/// `environment` leads to one.
final class RunningDaemon {
    let directory: TestDirectory
    let socketPath: String
    private(set) var pid: pid_t = 0
    private var isOver = false
    private let log: Int32

    /// Starts it, and returns when it has said `READY=1`.
    ///
    /// `listeners` are handed over as the service manager does; `manager` is one that stays;
    /// `wrapper` is a command that runs canopyd in its own place, and `program` another copy of it.
    init(
        in directory: TestDirectory? = nil, configuration: String? = nil, socketPath: String? = nil,
        arguments: [String] = [], environment: [String: String] = [:],
        listeners: [(name: String, descriptor: Int32)] = [], under wrapper: [String] = [],
        manager: ServiceManager? = nil, program: String? = nil
    ) throws {
        _ = StallMeter.shared
        let directory = try directory ?? TestDirectory()
        self.directory = directory
        self.socketPath = socketPath ?? directory.socketPath
        if let configuration { try directory.write(configuration, "conf/canopyd/canopyd.conf") }
        log = clinux_memfd_create("canopyd-log")
        // One that is gone once canopyd is ready keeps nothing for its next start.
        let manager = try manager ?? ServiceManager()
        let variables = environment.merging(["NOTIFY_SOCKET": manager.notices.path]) { $1 }
        pid = try CanopydProgram.spawn(
            arguments, directory, variables, standardError: log,
            listeners: listeners + manager.descriptors(), under: wrapper, program: program)
        try manager.awaitReadiness()
    }

    deinit {
        if !isOver {
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
        close(log)
    }

    func connect() throws -> RawClient { try RawClient(socketPath) }

    /// Sends the signal and waits for the end; the exit status, or 128 and the signal.
    func end(by signal: Int32) throws -> Int32 {
        kill(pid, signal)
        isOver = true
        return try CanopydProgram.wait(pid)
    }

    var words: String { CanopydProgram.contents(log) }

    /// Anonymous memory in kB; 0 under a sanitizer, which keeps what is freed, to notice its use.
    func anonymousMemory() throws -> Int {
        if Sanitizer.isOn { return 0 }
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
        return try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    }

    /// How many descriptors it has open; root's to know, since its memory is nobody's to read.
    func descriptors() throws -> Int { try openFiles().count }

    /// What its descriptors are, without the numbers that the kernel gives pipes and sockets.
    func openFiles() throws -> [String] {
        let directory = "/proc/\(pid)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: directory).map { number in
            // One that is closed meanwhile was open a moment ago.
            let link = try? FileManager.default.destinationOfSymbolicLink(
                atPath: directory + "/" + number)
            return String((link ?? "closed").prefix { $0 != "[" })
        }.sorted()
    }
}

/// A directory for one test, removed with it.
///
/// Its path is short: a socket's has to be.
final class TestDirectory {
    let path: String

    init() throws {
        var template = Array("/tmp/cdtXXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var socketPath: String { path + "/canopyd/agent.sock" }

    func write(_ text: String, _ name: String) throws {
        let url = URL(fileURLWithPath: path + "/" + name)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }

    /// A script that can be run at once.
    ///
    /// A child that another test starts has for a moment whatever is open here, and a file that is open
    /// for writing cannot be run: nobody has it so once the kernel grants a lease for reading it.
    func writeProgram(_ text: String, _ name: String) throws {
        try write(text, name)
        let setLease: Int32 = 1024  // F_SETLEASE of linux/fcntl.h, which Swift does not import.
        let descriptor = open(path + "/" + name, O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(fchmod(descriptor, 0o755) == 0)
        try eventually("no other process has it open for writing") {
            fcntl(descriptor, setLease, Int32(F_RDLCK)) == 0
        }
        try #require(fcntl(descriptor, setLease, Int32(F_UNLCK)) == 0)
    }

    /// What the regular files in it contain.
    func files() throws -> [(name: String, contents: Data)] {
        let names = try #require(FileManager.default.enumerator(atPath: path))
        var files: [(String, Data)] = []
        for case let name as String in names
        where names.fileAttributes?[.type] as? FileAttributeType == .typeRegular {
            // One that has just been removed holds nothing.
            guard let contents = FileManager.default.contents(atPath: path + "/" + name) else {
                continue
            }
            files.append((name, contents))
        }
        return files
    }

    func status(_ path: String) throws -> stat {
        var status = stat()
        try #require(lstat(path, &status) == 0, "\(path): \(String(cString: strerror(errno)))")
        return status
    }
}

/// What sd_notify talks to.
final class NoticeSocket {
    let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        unlink(path)
        descriptor = try UnixSocket.make(SOCK_DGRAM)
        try #require(UnixSocket.call(bind, descriptor, path) == 0)
    }

    deinit { close(descriptor) }

    /// One message, and the descriptors that came with it.
    struct Notice {
        let lines: [Substring]
        let descriptors: [Int32]
    }

    /// Whether nothing comes for so many seconds, after what has come already.
    func isSilent(for seconds: Int) throws -> Bool {
        while try receive(Int32(MSG_DONTWAIT)) != nil {}
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&ready, 1, Int32(seconds * 1000)) == 0
    }

    /// The next message; nil if none comes.
    func receive(_ flags: Int32 = 0) throws -> Notice? {
        var text = [UInt8](repeating: 0, count: 4096)
        // Aligned as the kernel's structures want it.
        var control = [UInt64](repeating: 0, count: 64)
        let (count, controlBytes) = text.withUnsafeMutableBytes { text in
            control.withUnsafeMutableBytes { control in
                var piece = iovec(iov_base: text.baseAddress, iov_len: text.count)
                return withUnsafeMutablePointer(to: &piece) { piece in
                    var message = msghdr()
                    message.msg_iov = piece
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    let flags = flags | Int32(MSG_CMSG_CLOEXEC)
                    var count = 0
                    // Who is halted for a moment in a wait that has an end is told so.
                    repeat {
                        count = recvmsg(descriptor, &message, flags)
                    } while count < 0 && errno == EINTR
                    return (count, Int(message.msg_controllen))
                }
            }
        }
        guard count > 0 else { return nil }
        let descriptors = control.withUnsafeBytes {
            NoticeSocket.descriptors(UnsafeRawBufferPointer(rebasing: $0[..<controlBytes]))
        }
        return Notice(
            lines: String(decoding: text[..<count], as: UTF8.self).split(separator: "\n"),
            descriptors: descriptors)
    }

    /// Those of the one control message that can come: its length in 8 bytes, level and type in 4
    /// each, and then the descriptors.
    private static func descriptors(_ control: UnsafeRawBufferPointer) -> [Int32] {
        guard control.count >= 16, control.load(fromByteOffset: 12, as: Int32.self) == scmRights
        else { return [] }
        let length = Int(control.load(as: UInt64.self))
        return stride(from: 16, to: min(length, control.count), by: 4).map {
            control.load(fromByteOffset: $0, as: Int32.self)
        }
    }

    private static let scmRights: Int32 = 1
}

enum UnixSocket {
    /// A socket whose reads give up after a time that nothing healthy takes.
    static func make(_ type: __socket_type) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(descriptor >= 0)
        var patience = timeval(tv_sec: 60 * Sanitizer.slowness, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }

    static func call(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ descriptor: Int32,
        _ path: String
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

/// A client that says exactly what a test wants said.
final class RawClient {
    private let descriptor: Int32
    private var received: [UInt8] = []

    struct Answer {
        let status: Int
        let head: String
        let body: String
    }

    init(_ path: String) throws {
        descriptor = try UnixSocket.make(SOCK_STREAM)
        let result = UnixSocket.call(Glibc.connect, descriptor, path)
        try #require(result == 0)
    }

    /// A client of a server on loopback.
    init(port: UInt16) throws {
        descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(descriptor >= 0)
        var patience = timeval(tv_sec: 60 * Sanitizer.slowness, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(result == 0, "nobody listens on port \(port)")
    }

    deinit { close(descriptor) }

    func send(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            try #require(count > 0, "the daemon has hung up")
            bytes = bytes.dropFirst(count)
        }
    }

    /// Sends what fits, unless the daemon has hung up.
    func sendIfPossible(_ text: String) {
        _ = text.withCString {
            Glibc.send(descriptor, $0, strlen($0), Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
    }

    /// Sends from a thread of its own, for a test that reads meanwhile.
    func sendInBackground(_ text: String) -> DispatchGroup {
        let group = DispatchGroup()
        let descriptor = dup(descriptor)
        DispatchQueue.global().async(group: group) {
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { break }
                bytes = bytes.dropFirst(count)
            }
            close(descriptor)
        }
        return group
    }

    /// Whether the other end takes nothing more, not even a byte to throw away.
    var isCutOff: Bool { Glibc.send(descriptor, "x", 1, Int32(MSG_NOSIGNAL)) < 0 }

    func closeSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// One answer; `hasBody` false for the answer to HEAD, and for a stream.
    func answer(hasBody: Bool = true) throws -> Answer {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = received.firstRange(of: end) {
                let head = String(decoding: received[..<range.lowerBound], as: UTF8.self)
                let length = hasBody ? RawClient.length(head) : 0
                if received.count >= range.upperBound + length {
                    let body = String(
                        decoding: received[range.upperBound..<range.upperBound + length],
                        as: UTF8.self)
                    received.removeFirst(range.upperBound + length)
                    let status = try #require(
                        head.split(separator: " ").dropFirst().first.flatMap { Int($0) })
                    return Answer(status: status, head: head, body: body)
                }
            }
            try #require(try more(), "the daemon closed before it had answered")
        }
    }

    /// Reads give up after this many seconds from now on.
    func wait(upTo seconds: Int) {
        var patience = timeval(tv_sec: seconds * Sanitizer.slowness, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    /// What comes up to the end of `end`, which has to come.
    func text(upTo end: String) throws -> String {
        let end = Array(end.utf8)
        while true {
            if let range = received.firstRange(of: end) {
                defer { received.removeFirst(range.upperBound) }
                return String(decoding: received[..<range.upperBound], as: UTF8.self)
            }
            try #require(try more(), "the daemon closed before it had said all")
        }
    }

    /// What a subscriber has been sent when the text is in it.
    func events(until text: String) throws -> String {
        while received.firstRange(of: Array(text.utf8)) == nil {
            try #require(try more(), "the daemon closed before it told of \(text)")
        }
        // To the end of the event.
        while received.suffix(2) != [10, 10] { try #require(try more()) }
        defer { received = [] }
        return String(decoding: received, as: UTF8.self)
    }

    /// Whether nothing more comes.
    func isAtEnd() throws -> Bool {
        guard received.isEmpty else { return false }
        return try !more()
    }

    private func more() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var count = 0
        repeat {
            count = recv(descriptor, &buffer, buffer.count, 0)
        } while count < 0 && errno == EINTR
        if count < 0, errno == ECONNRESET { return false }
        try #require(count >= 0, "the daemon says nothing")
        received += buffer[..<count]
        return count > 0
    }

    private static func length(_ head: String) -> Int {
        for line in head.split(separator: "\r\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts[0].lowercased() == "content-length" {
                return Int(parts[1].trimmingCharacters(in: .whitespaces)) ?? 0
            }
        }
        return 0
    }
}

/// The program beside the test bundle.
enum CanopydProgram {
    struct Outcome {
        let exitCode: Int32
        let words: String
    }

    /// Runs it to its end.
    static func run(
        _ arguments: [String] = [], in directory: TestDirectory,
        environment: [String: String] = [:],
        listeners: [(name: String, descriptor: Int32)] = [], under wrapper: [String] = []
    ) throws -> Outcome {
        let log = clinux_memfd_create("canopyd-log")
        defer { close(log) }
        let pid = try spawn(
            arguments, directory, environment, standardError: log, listeners: listeners,
            under: wrapper)
        return Outcome(exitCode: try wait(pid), words: contents(log))
    }

    /// Variables of `extra` that are empty are left out, and so are `listeners`' names if all are.
    static func spawn(
        _ arguments: [String], _ directory: TestDirectory, _ extra: [String: String],
        standardError: Int32, listeners: [(name: String, descriptor: Int32)] = [],
        under wrapper: [String] = [], program: String? = nil
    ) throws -> pid_t {
        var environment = [
            "HOME": directory.path, "XDG_RUNTIME_DIR": directory.path,
            "XDG_STATE_HOME": directory.path + "/state",
            "XDG_CONFIG_HOME": directory.path + "/conf",
            // A bus that is not there, and not the one of whoever runs the tests.
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + directory.path + "/no-bus",
        ].merging(extra) { $1 }.filter { !$0.value.isEmpty }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, standardError, 1)
        posix_spawn_file_actions_adddup2(&actions, standardError, 2)
        var command = wrapper + [try program ?? path] + arguments
        if !listeners.isEmpty {
            for (index, listener) in listeners.enumerated() {
                posix_spawn_file_actions_adddup2(&actions, listener.descriptor, 3 + Int32(index))
            }
            environment["LISTEN_FDS"] = String(listeners.count)
            if listeners.contains(where: { !$0.name.isEmpty }) {
                environment["LISTEN_FDNAMES"] = listeners.map(\.name).joined(separator: ":")
            }
            // The process that they are for has to be named, and is not known before it is there.
            command = ["/bin/sh", "-c", "LISTEN_PID=$$ exec \"$0\" \"$@\""] + command
        }
        let first = command[0]
        var argv = command.map { strdup($0) } + [nil]
        var envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        var pid: pid_t = 0
        var code: Int32 = 0
        // One that a test has just copied is busy, while a child that another test was starting has the
        // descriptor that it was written through.
        try eventually("no other process has it open") {
            code = posix_spawn(&pid, first, &actions, nil, &argv, &envp)
            return code != ETXTBSY
        }
        try #require(code == 0)
        return pid
    }

    static func wait(_ pid: pid_t) throws -> Int32 {
        var status: Int32 = 0
        try #require(waitpid(pid, &status, 0) == pid)
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    static func contents(_ descriptor: Int32) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = pread(descriptor, &buffer, buffer.count, off_t(bytes.count))
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer[..<count]
        }
    }

    static var path: String {
        get throws {
            let bundle = try FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/exe")
            let candidates = [bundle, CommandLine.arguments.first ?? ""].map {
                URL(fileURLWithPath: $0).deletingLastPathComponent().path + "/canopyd"
            }
            return try #require(
                candidates.first { access($0, X_OK) == 0 }, "canopyd is not built")
        }
    }
}
