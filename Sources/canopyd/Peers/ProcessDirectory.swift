internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A process's directory in `/proc`, held open: it stays that process's, and reading in it fails
/// once the process is gone.
struct ProcessDirectory: ~Copyable {
    private let directory: FileDescriptor

    /// Opens the directory of the process that has the number now.
    init(of process: Int32) throws(SystemError) {
        directory = try .open("/proc/\(process)", O_DIRECTORY | O_RDONLY)
    }

    /// When the process was started; nil if the kernel's words cannot be read.
    func start() throws(SystemError) -> BootTime? {
        ProcessStart.time(stat: try contents(of: "stat"))
    }

    /// The units that the process is in.
    func units() -> Peer.Known<UnitMembership> {
        do throws(SystemError) {
            let units = UnitMembership(controlGroups: try contents(of: "cgroup"))
            return units.map { .known($0) } ?? .unknown(.noControlGroup)
        } catch {
            return .unknown(Peer.Obscurity(error))
        }
    }

    /// The program that the process runs.
    func executable() -> Peer.Known<Executable> {
        do throws(SystemError) {
            let path = try target(of: "exe")
            var status = stat()
            // The link leads to the very file, wherever it is.
            guard fstatat(directory.number, "exe", &status, 0) == 0 else {
                throw .last("fstatat", "exe")
            }
            return .known(ProcessDirectory.executable(path, Executable.File(status)))
        } catch {
            return .unknown(Peer.Obscurity(error))
        }
    }

    private static func executable(_ path: String, _ file: Executable.File) -> Executable {
        if Executable.File(at: path) == file {
            return Executable(path: path, file: file, standing: .inPlace)
        }
        // What the kernel adds where no name leads to the file any more.
        let mark = " (deleted)"
        guard path.hasSuffix(mark) else {
            return Executable(path: path, file: file, standing: .elsewhere)
        }
        return Executable(
            path: String(path.dropLast(mark.count)), file: file, standing: .removed)
    }

    /// What the process calls itself: `prctl(2)` sets it.
    func name() -> String? {
        do throws(SystemError) {
            let bytes = try contents(of: "comm")
            return String(
                decoding: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...],
                as: UTF8.self)
        } catch {
            return nil
        }
    }

    private func contents(of name: String) throws(SystemError) -> [UInt8] {
        let opened = clinux_openat(directory.number, name, O_RDONLY, 0)
        guard opened >= 0 else { throw .last("openat", name) }
        return try FileDescriptor(owning: opened).readAll(
            limit: Limits.processFileBytes, subject: name)
    }

    private func target(of link: String) throws(SystemError) -> String {
        try withUnsafeTemporaryAllocation(
            byteCount: Limits.linkBytes, alignment: 1
        ) { buffer throws(SystemError) in
            guard let start = buffer.baseAddress else { return "" }
            let count = readlinkat(
                directory.number, link, start.assumingMemoryBound(to: CChar.self), buffer.count)
            guard count >= 0 else { throw .last("readlinkat", link) }
            return String(decoding: buffer[..<count], as: UTF8.self)
        }
    }
}

extension Executable.File {
    /// The file that the path leads to, links followed; nil if none can be seen there.
    init?(at path: String) {
        var status = Glibc.stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    fileprivate init(_ status: stat) {
        self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }
}

extension Peer.Obscurity {
    /// Why something in `/proc` could not be read.
    init(_ error: SystemError) {
        switch error.code {
        // The directory is there: what it holds goes with the process.
        case ENOENT, ESRCH: self = .ended
        case EACCES, EPERM: self = .forbidden
        default: self = .unreadable(error.description)
        }
    }
}
