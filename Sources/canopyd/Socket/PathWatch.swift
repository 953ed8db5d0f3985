internal import AgentCore
internal import Glibc
internal import LinuxSystem

/// Notices that something was removed from a directory, moved into it, that rights in it are others
/// now, or that the directory itself went: inotify, so that nothing is asked while nothing happens.
final class PathWatch {
    private let directory: String
    private let inotify: FileDescriptor
    private var watch: DescriptorWatch?

    /// The kernel's number for the directory that is watched now.
    private var followed: Int32 = -1

    /// Calls `onChange` at each change, from ``follow()`` on; throws if the user has no inotify
    /// instances left (`fs.inotify.max_user_instances`).
    init(
        directory: String, _ loop: EventLoop, onChange: @escaping () -> Void
    ) throws(SystemError) {
        self.directory = directory
        let opened = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        guard opened >= 0 else { throw .last("inotify_init1") }
        inotify = FileDescriptor(owning: opened)
        watch = try loop.watch(opened, .readable) { [unowned self] _ in
            drain()
            onChange()
        }
    }

    // Before its descriptor.
    deinit { watch = nil }

    /// Watches the directory that the path leads to now; while there is none, the nearest one
    /// above, in which it may appear again.
    func follow() {
        var path = directory[...]
        while true {
            let isThere = path.endIndex == directory.endIndex
            let news =
                isThere
                ? IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB : IN_CREATE | IN_MOVED_TO
            let mask = UInt32(news | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
            let number = inotify_add_watch(inotify.number, String(path), mask)
            if number >= 0 { return replaceFollowed(by: number) }
            guard errno == ENOENT || errno == ENOTDIR, path != "/",
                let slash = path.lastIndex(of: "/")
            else {
                let error = SystemError.last("inotify_add_watch", String(path))
                return Journal.write(
                    .pathUnwatched, (.error, error.description))
            }
            path = slash == path.startIndex ? path[...slash] : path[..<slash]
        }
    }

    private func replaceFollowed(by number: Int32) {
        guard number != followed else { return }
        // It fails for a directory that is gone, which nobody watches by itself.
        if followed >= 0 { inotify_rm_watch(inotify.number, followed) }
        followed = number
    }

    /// What changed does not matter: the path is looked at.
    private func drain() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(inotify.number, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
