/// Frames server-sent events; their ids increase for as long as the daemon runs.
package struct EventStream: Sendable {
    private var lastID: Int64 = 0

    package init() {}

    /// A comment line, which readers skip: sent so that both ends notice a connection that is gone.
    package static let keepAlive: [UInt8] = Array(": keep-alive\n\n".utf8)

    /// How a profile is now.
    package mutating func state(_ view: ProfileView) -> [UInt8] {
        var data = JSONWriter(into: [UInt8]())
        data.write(view)
        return frame("state", data.finish())
    }

    /// A profile has a new generation.
    package mutating func rotated(
        _ profile: ProfileName, generation: Int64, expiresAt: WallTime, refreshAt: WallTime
    ) -> [UInt8] {
        var data = JSONWriter(into: [UInt8]())
        data.beginObject()
        data.member("profile", profile.text)
        data.member("generation", generation)
        data.member("expires_at", Timestamp.rfc3339(expiresAt))
        data.member("refresh_at", Timestamp.rfc3339(refreshAt))
        data.endObject()
        return frame("rotated", data.finish())
    }

    /// The data is JSON, whose writer lets no line break through: it is one line.
    private mutating func frame(_ name: StaticString, _ data: [UInt8]) -> [UInt8] {
        lastID += 1
        var bytes = [UInt8]()
        bytes.reserveCapacity(data.count + 48)
        bytes.append("event: " as StaticString)
        bytes.append(name)
        bytes.append("\nid: " as StaticString)
        bytes.appendDecimal(lastID)
        bytes.append("\ndata: " as StaticString)
        bytes += data
        bytes.append("\n\n" as StaticString)
        return bytes
    }
}
