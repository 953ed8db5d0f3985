package import AgentCore
internal import CLinux
internal import Glibc

/// A small file that is replaced as a whole and survives a power cut once it is written.
package struct DurableFile: Sendable {
    package let path: String

    package init(_ path: String) {
        self.path = path
    }

    /// The contents; nil if there is no file.
    package func read(limit: Int) throws(SystemError) -> [UInt8]? {
        try readIdentified(limit: limit)?.bytes
    }

    /// The contents, and which file they are in; nil if there is no file.
    package func readIdentified(
        limit: Int
    ) throws(SystemError) -> (bytes: [UInt8], file: Anchor)? {
        let file: FileDescriptor
        do throws(SystemError) {
            file = try FileDescriptor.open(path, O_RDONLY | O_NOFOLLOW)
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
        return (
            try file.readAll(limit: limit, subject: path), try file.identity(subject: path)
        )
    }

    /// Temporary file, fsync, rename, fsync of the directory, in this order: at every moment a
    /// reader after a crash finds the old contents or the new ones.
    package func write(_ bytes: [UInt8], durably: Bool = true) throws(SystemError) {
        try write(durably: durably) { _ in bytes }
    }

    /// The same, with contents that are made once it is known which file they go into.
    package func write(
        durably: Bool = true, _ contents: (Anchor) -> [UInt8]
    ) throws(SystemError) {
        let temporary = path + ".new"
        try DurableFile.make(temporary, contents, durably: durably)
        guard rename(temporary, path) == 0 else { throw .last("rename", path) }
        if durably { try Directory.sync(Directory.parent(of: path)) }
    }

    private static func make(
        _ path: String, _ contents: (Anchor) -> [UInt8], durably: Bool
    ) throws(SystemError) {
        let file = try FileDescriptor.open(
            path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
        try file.writeAll(contents(try file.identity(subject: path)), subject: path)
        if durably { try file.sync(subject: path) }
    }
}

/// What is done to directories.
package enum Directory {
    /// The path without its last part.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes the entries of a directory survive a power cut.
    package static func sync(_ path: String) throws(SystemError) {
        let directory = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)
        try directory.sync(subject: path)
    }

    /// Makes a directory that only its user can enter, its parents too where they are missing.
    package static func make(_ path: String) throws(SystemError) {
        if mkdir(path, 0o700) == 0 {
            return try sync(parent(of: path))
        }
        if errno == EEXIST { return }
        guard errno == ENOENT, parent(of: path) != path else { throw .last("mkdir", path) }
        try make(parent(of: path))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last("mkdir", path) }
        try sync(parent(of: path))
    }

    /// The names in a directory, without the dots; empty if there is none.
    package static func names(_ path: String) throws(SystemError) -> [String] {
        guard let stream = opendir(path) else {
            if errno == ENOENT { return [] }
            throw .last("opendir", path)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
