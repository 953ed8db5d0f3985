internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// A file that holds a token and nothing else, replaced as a whole, readable by its owner alone.
struct TokenFile {
    let path: String

    /// Replaces the contents: a reader finds the old token or the new one, never a part.
    ///
    /// A link is followed, so that a token whose file was linked into memory does not come to lie on
    /// a disk. What is there and no file, a device or a pipe, is left alone.
    func write(_ token: Secret) throws(Complaint) {
        let place = try place()
        // Beside it, or the rename would cross file systems; named for us, or two writers would mix.
        let temporary = "\(place).\(getpid()).new"
        do throws(SystemError) {
            unlink(temporary)
            let file = try FileDescriptor.open(
                temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            // A umask may have taken away what its reader needs.
            guard fchmod(file.number, 0o600) == 0 else { throw .last("fchmod", temporary) }
            let written = token.withBytes { bytes in
                Result { () throws(SystemError) in
                    try file.writeAll(bytes, subject: temporary)
                }
            }
            try written.get()
            guard rename(temporary, place) == 0 else { throw .last("rename", place) }
        } catch {
            unlink(temporary)
            throw Complaint(
                .failure, "the token file cannot be written", detail: "\(error)",
                cure: "see to it that the directory exists and is yours to write: \(place)")
        }
    }

    func remove() {
        // What is not there need not be removed.
        unlink(path)
    }

    /// Where the file is, or is to be, all links followed.
    private func place() throws(Complaint) -> String {
        var place = path
        for _ in 0..<Limits.linksFollowed {
            var status = stat()
            // What cannot be looked at cannot be written either, and that says why.
            guard lstat(place, &status) == 0 else { return place }
            switch status.st_mode & S_IFMT {
            case S_IFREG:
                return place
            case S_IFLNK:
                guard let target = TokenFile.target(of: place) else { return place }
                let directory = place.lastIndex(of: "/").map { place[...$0] } ?? ""
                place = target.hasPrefix("/") ? target : directory + target
            default:
                throw Complaint(
                    .failure, "the token file cannot be written",
                    detail: "\(place) is there, and is no file",
                    cure: "name a file, or one that is not there yet")
            }
        }
        throw Complaint(
            .failure, "the token file cannot be written",
            detail: "\(path) is a link that leads to itself", cure: "remove it: rm \(path)")
    }

    private static func target(of link: String) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = target.withUnsafeMutableBytes { buffer in
            buffer.withMemoryRebound(to: CChar.self) { characters in
                characters.baseAddress.map { readlink(link, $0, characters.count) } ?? -1
            }
        }
        guard length > 0 else { return nil }
        return String(decoding: target[..<length], as: UTF8.self)
    }
}
