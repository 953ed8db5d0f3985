import Foundation
import Glibc
import Testing

/// A service manager's part: it hears sd_notify, and keeps descriptors for canopyd's next start.
final class ServiceManager {
    let notices: NoticeSocket
    private let directory: TestDirectory
    private var kept: [String: Int32] = [:]

    init() throws {
        directory = try TestDirectory()
        notices = try NoticeSocket(directory.path + "/notify")
    }

    deinit { for descriptor in kept.values { close(descriptor) } }

    /// Everything that was kept, for a start now.
    func descriptors() throws -> [(name: String, descriptor: Int32)] {
        while let notice = try notices.receive(Int32(MSG_DONTWAIT)) { note(notice) }
        return kept.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// What is kept under the name, to be read and written.
    func kept(_ name: String) throws -> Int32 {
        try #require(try descriptors().first { $0.name == name }?.descriptor)
    }

    /// Waits until canopyd is ready.
    func awaitReadiness() throws {
        while true {
            let notice = try #require(
                try notices.receive(), "canopyd did not say that it is ready")
            note(notice)
            if notice.lines.contains("READY=1") { return }
        }
    }

    private func note(_ notice: NoticeSocket.Notice) {
        let name = notice.lines.first { $0.hasPrefix("FDNAME=") }?.dropFirst(7) ?? "stored"
        if notice.lines.contains("FDSTORE=1") {
            for descriptor in notice.descriptors {
                kept.updateValue(descriptor, forKey: String(name)).map { _ = close($0) }
            }
        } else {
            for descriptor in notice.descriptors { close(descriptor) }
        }
        if notice.lines.contains("FDSTOREREMOVE=1") {
            kept.removeValue(forKey: String(name)).map { _ = close($0) }
        }
    }
}
