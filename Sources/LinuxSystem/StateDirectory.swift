package import AgentCore
internal import CLinux
internal import Glibc

/// What is kept of one machine's profiles outside the keyring, without secrets: a file, a lock and
/// a name for each, and the anchor of them all.
///
/// Homes are shared between machines, so each machine has a folder of its own.
package struct StateDirectory: Sendable {
    /// The folder of this machine.
    package let path: String

    /// The folder for the copies of the marks, which live as long as the boot; nil for none.
    package let runtimePath: String?

    package init(path: String, runtimePath: String?) {
        self.path = path
        self.runtimePath = runtimePath
    }

    /// The profiles that have a file here.
    package func profiles() throws(SystemError) -> [ProfileName] {
        try Directory.names(path).compactMap { name in
            guard name.hasSuffix(".json") else { return nil }
            do throws(ProfileName.Malformed) {
                return try ProfileName(String(name.dropLast(5)))
            } catch {
                return nil  // Not a file of ours.
            }
        }.sorted()
    }

    /// What is known of the profile; nil before its first sign-in.
    package func signIns(of profile: ProfileName) throws(Unreadable) -> KnownSignIns? {
        try read(file(profile))?.signIns
    }

    /// The same, and whether the file is another than the one that was written.
    ///
    /// Each write makes a new file, whose contents name it: one that a backup brought back, or that
    /// was copied over the old one, is told from it, which the anchor cannot tell where the
    /// restoring skips files that have not changed.
    package func identifiedSignIns(
        of profile: ProfileName
    ) throws(Unreadable) -> (signIns: KnownSignIns, isCopy: Bool)? {
        try read(file(profile))
    }

    /// The copy of the marks of the same boot; empty without one, or with one that is unreadable.
    package func runtimeMarks(of profile: ProfileName) -> [SignInID: Int64] {
        guard let path = runtimeFile(profile) else { return [:] }
        do throws(Unreadable) {
            return try read(path)?.signIns.marks ?? [:]
        } catch {
            return [:]  // The durable file decides alone then, as after a reboot.
        }
    }

    /// Writes the profile's file durably, and then the copy of the marks.
    package func write(_ signIns: KnownSignIns, of profile: ProfileName) throws(SystemError) {
        try Directory.make(path)
        try DurableFile(file(profile)).write { file in signIns.encoded(in: file) }
        guard let copy = runtimeFile(profile), let folder = runtimePath else { return }
        do throws(SystemError) {
            try Directory.make(folder)
            try DurableFile(copy).write(durably: false) { file in signIns.encoded(in: file) }
        } catch {
            // Ignored: the copy only guards against a state directory that is restored under a
            // running system, and a full tmpfs must not stop rotations.
        }
    }

    /// The anchor; nil if there is none.
    package func anchor() throws(SystemError) -> Anchor? {
        do throws(SystemError) {
            let file = try FileDescriptor.open(anchorPath, O_RDONLY | O_NOFOLLOW)
            return try file.identity(subject: anchorPath)
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
    }

    /// The anchor; created if there is none, and never written again.
    package func makeAnchor() throws(SystemError) -> Anchor {
        if let anchor = try anchor() { return anchor }
        try Directory.make(path)
        do throws(SystemError) {
            let file = try FileDescriptor.open(
                anchorPath, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            try file.sync(subject: anchorPath)
        } catch {
            // Another exchange may have been quicker; then its anchor is the one.
            guard error.code == EEXIST else { throw error }
        }
        try Directory.sync(path)
        guard let anchor = try anchor() else {
            throw SystemError("open", code: ENOENT, subject: anchorPath)
        }
        return anchor
    }

    /// The file that is locked while an exchange of the profile runs.
    package func lockPath(_ profile: ProfileName) -> String {
        "\(path)/\(profile.text).lock"
    }

    private var anchorPath: String { path + "/anchor" }

    private func file(_ profile: ProfileName) -> String {
        "\(path)/\(profile.text).json"
    }

    private func runtimeFile(_ profile: ProfileName) -> String? {
        runtimePath.map { "\($0)/\(profile.text).json" }
    }

    /// Why a profile's file says nothing.
    package enum Unreadable: Error, Sendable, CustomStringConvertible {
        case system(SystemError)
        case contents(path: String, KnownSignIns.Unreadable)

        package var description: String {
            switch self {
            case .system(let error): "\(error)"
            case .contents(let path, .newerFormat(let version)):
                "\(path): written by a later version of canopyd (format \(version)); use that version"
            case .contents(let path, .malformed(let member)):
                "\(path): damaged at \"\(member)\""
            }
        }
    }

    private func read(
        _ path: String
    ) throws(Unreadable) -> (signIns: KnownSignIns, isCopy: Bool)? {
        let contents: (bytes: [UInt8], file: Anchor)?
        do throws(SystemError) {
            contents = try DurableFile(path).readIdentified(limit: Limits.stateFileBytes)
        } catch {
            throw .system(error)
        }
        guard let (bytes, file) = contents else { return nil }
        do throws(KnownSignIns.Unreadable) {
            let decoded = bytes.withUnsafeBytes { bytes in
                Result { () throws(KnownSignIns.Unreadable) in
                    (
                        try KnownSignIns(decoding: bytes),
                        try KnownSignIns.file(decoding: bytes)
                    )
                }
            }
            let (signIns, written) = try decoded.get()
            return (signIns, written != file)
        } catch {
            throw .contents(path: path, error)
        }
    }
}
