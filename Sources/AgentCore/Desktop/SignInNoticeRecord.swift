/// What a restarted canopyd has to know of the notice, so that nobody is told twice and what is shown
/// can be taken back: a JSON object in the runtime directory, without secrets.
///
/// It lives as long as the runtime directory: whoever logs in anew sees an empty desktop, and is told
/// again.
extension SignInNotice {
    /// The format that this program writes.
    private static let formatVersion: Int64 = 1

    /// The contents of the file; nil where there is nothing to know.
    package func record(of boot: BootID) -> [UInt8]? {
        guard !ended.isEmpty || shown != nil else { return nil }
        var writer = JSONWriter(into: [UInt8]())
        writer.beginObject()
        writer.member("version", SignInNotice.formatVersion)
        writer.member("boot", boot.text)
        writer.key("ended")
        writer.beginArray()
        for (profile, sign) in ended.sorted(by: { $0.key < $1.key }) {
            writer.beginObject()
            writer.member("profile", profile.text)
            writer.member("since_boot_ns", sign.since.nanoseconds)
            writer.member("told", sign.isTold)
            writer.endObject()
        }
        writer.endArray()
        if let shown {
            writer.key("shown")
            writer.beginObject()
            writer.member("id", Int64(shown.id))
            writer.member("owner", shown.owner)
            writer.key("profiles")
            writer.beginArray()
            for profile in shown.profiles.sorted() { writer.string(profile.text) }
            writer.endArray()
            writer.endObject()
        }
        writer.endObject()
        return writer.finish()
    }

    /// What the file says; nothing has ended where it says nothing of use, or speaks of another boot.
    package init(recorded bytes: UnsafeRawBufferPointer, boot: BootID) {
        self.init()
        do throws(JSONFault) {
            let root = try JSONReader.parse(bytes)
            guard root["version"]?.int == SignInNotice.formatVersion,
                root["boot"]?.string == boot.text
            else { return }
            self.init(
                ended: SignInNotice.ended(root["ended"]), shown: SignInNotice.shown(root["shown"]))
        } catch {
            return  // A notice too many is the worst that comes of it.
        }
    }

    private static func ended(_ list: JSONValue?) -> [ProfileName: Ended] {
        var ended: [ProfileName: Ended] = [:]
        guard let list, list.kind == .array else { return ended }
        for element in list.elements {
            guard let profile = name(element["profile"]), let since = element["since_boot_ns"]?.int,
                let isTold = element["told"]?.bool
            else { continue }
            ended[profile] = Ended(since: BootTime(nanoseconds: since), isTold: isTold)
        }
        return ended
    }

    private static func shown(_ object: JSONValue?) -> Shown? {
        guard let id = object?["id"]?.int.flatMap(UInt32.init(exactly:)),
            let owner = object?["owner"]?.string, let list = object?["profiles"],
            list.kind == .array
        else { return nil }
        return Shown(id: id, owner: owner, profiles: Set(list.elements.compactMap { name($0) }))
    }

    private static func name(_ value: JSONValue?) -> ProfileName? {
        guard let text = value?.string else { return nil }
        do throws(ProfileName.Malformed) {
            return try ProfileName(text)
        } catch {
            return nil  // Not written by us.
        }
    }
}
