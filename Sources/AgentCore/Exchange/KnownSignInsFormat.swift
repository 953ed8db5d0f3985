/// The state directory's file of one profile: a JSON object with a format version.
extension KnownSignIns {
    /// The format that this program writes.
    package static let formatVersion: Int64 = 1

    package enum Unreadable: Error, Equatable, Sendable {
        case newerFormat(Int64)
        /// The member that is missing or wrong.
        case malformed(String)
    }

    /// The contents of the file; `file` is the very file that they are written into.
    package func encoded(in file: Anchor) -> [UInt8] {
        var writer = JSONWriter(into: [UInt8]())
        writer.beginObject()
        writer.member("version", KnownSignIns.formatVersion)
        writer.member("file_inode", Int64(bitPattern: file.inode))
        writer.member("file_birth_ns", file.birth)
        writer.member("current", ifPresent: current?.text)
        writer.key("pending")
        writer.beginArray()
        for signIn in pending { writer.string(signIn.text) }
        writer.endArray()
        writer.key("marks")
        writer.beginObject()
        for (signIn, mark) in marks.sorted(by: { $0.key.text < $1.key.text }) {
            writer.key(signIn.text)
            writer.number(mark)
        }
        writer.endObject()
        writer.key("dead")
        writer.beginArray()
        for death in dead {
            writer.beginObject()
            writer.member("sign_in", death.signIn.text)
            writer.member("generation", death.generation)
            writer.member("reason", death.reason.rawValue)
            writer.member("at_ms", death.at.milliseconds)
            writer.endObject()
        }
        writer.endArray()
        if let account {
            writer.member("url", account.baseURL)
            writer.member("identity_id", account.identity.id)
            writer.member("identity_email", account.identity.email)
            writer.member("signed_in_ms", account.signedInAt.milliseconds)
        }
        writer.endObject()
        return writer.finish()
    }

    /// The file that the contents say they were written into.
    package static func file(decoding bytes: UnsafeRawBufferPointer) throws(Unreadable) -> Anchor {
        let root: JSONValue
        do throws(JSONFault) {
            root = try JSONReader.parse(bytes)
        } catch {
            throw .malformed("JSON, \(error)")
        }
        guard let inode = root["file_inode"]?.int else { throw .malformed("file_inode") }
        guard let birth = root["file_birth_ns"]?.int else { throw .malformed("file_birth_ns") }
        return Anchor(inode: UInt64(bitPattern: inode), birth: birth)
    }

    package init(decoding bytes: UnsafeRawBufferPointer) throws(Unreadable) {
        let root: JSONValue
        do throws(JSONFault) {
            root = try JSONReader.parse(bytes)
        } catch {
            throw .malformed("JSON, \(error)")
        }
        guard let version = root["version"]?.int else { throw .malformed("version") }
        guard version <= KnownSignIns.formatVersion else { throw .newerFormat(version) }
        guard version == KnownSignIns.formatVersion else { throw .malformed("version") }
        var marks: [SignInID: Int64] = [:]
        guard let written = root["marks"], written.kind == .object else {
            throw .malformed("marks")
        }
        for (key, value) in written.members {
            guard let signIn = SignInID(key), let mark = value.int, mark >= 0 else {
                throw .malformed("marks")
            }
            marks[signIn] = mark
        }
        var pending: [SignInID] = []
        guard let begun = root["pending"], begun.kind == .array else {
            throw .malformed("pending")
        }
        for element in begun.elements {
            guard let signIn = element.string.flatMap(SignInID.init) else {
                throw .malformed("pending")
            }
            pending.append(signIn)
        }
        var dead: [Death] = []
        guard let deaths = root["dead"], deaths.kind == .array else { throw .malformed("dead") }
        for element in deaths.elements {
            guard let signIn = element["sign_in"]?.string.flatMap(SignInID.init),
                let generation = element["generation"]?.int,
                let reason = element["reason"]?.string.flatMap(SignInReason.init(rawValue:)),
                let at = element["at_ms"]?.int
            else { throw .malformed("dead") }
            dead.append(
                Death(
                    signIn: signIn, generation: generation, reason: reason,
                    at: WallTime(milliseconds: at)))
        }
        var current: SignInID?
        if let written = root["current"] {
            guard let signIn = written.string.flatMap(SignInID.init) else {
                throw .malformed("current")
            }
            current = signIn
        }
        var account: Account?
        if let url = root["url"]?.string, let signedIn = root["signed_in_ms"]?.int {
            account = Account(
                baseURL: url,
                identity: Identity(
                    id: root["identity_id"]?.string ?? "",
                    email: root["identity_email"]?.string ?? ""),
                signedInAt: WallTime(milliseconds: signedIn))
        }
        self.init(
            current: current, pending: pending, marks: marks, dead: dead, account: account)
    }
}
