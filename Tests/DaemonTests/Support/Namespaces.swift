import Foundation
import Glibc
import Testing

/// A network of a test's own, and a boot clock that is as far ahead as if the machine had slept.
///
/// Programs enter by ``entrance``. Who runs the tests needs no privileges: the namespaces belong to
/// a user namespace with the same user in it.
final class Namespaces {
    private let keeper: Program
    private let commands: FileHandle
    private let pid: String
    private var count = 0
    private let hasOwnClock: Bool

    /// `asleep` is for how many seconds the machine seems to have slept, or nil.
    init(in directory: TestDirectory, asleep: Int? = nil) throws {
        hasOwnClock = asleep != nil
        let path = directory.path + "/namespaces-\(asleep ?? 0)"
        try #require(mkfifo(path, 0o600) == 0)
        let clock = asleep.map { ["--time", "--boottime", "\($0)", "--fork", "--kill-child"] }
        let keeper = try Program(
            "/usr/bin/unshare",
            ["--map-current-user", "--keep-caps", "--net"] + (clock ?? []) + [
                "/bin/sh", "-c",
                """
                ip link set lo up && echo "ready $$" || exit 1
                while read -r command; do
                    eval "$command" && echo 'done' || echo failed
                done <>"$0"
                """, path,
            ], environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
        func ready() -> Substring? {
            keeper.output.split(separator: "\n").first { $0.hasPrefix("ready ") }
        }
        try eventually("the namespaces are there: \(keeper.output)") { ready() != nil }
        pid = String(try #require(ready()).dropFirst("ready ".count))
        self.keeper = keeper
        commands = try #require(FileHandle(forUpdatingAtPath: path))
    }

    /// What a command line begins with whose program is to run inside; with the network of
    /// `other` if one is given, which must have been there before.
    func entrance(into other: Namespaces? = nil) -> [String] {
        ["/usr/bin/nsenter", "--preserve-credentials", "--target", pid, "--user"]
            + ["--net=/proc/\(other?.pid ?? pid)/ns/net"] + (hasOwnClock ? ["--time"] : []) + ["--"]
    }

    /// The same for a program that is to have the clock and nothing else.
    func clockEntrance() -> [String] {
        [
            "/usr/bin/nsenter", "--preserve-credentials", "--target", pid, "--user", "--time", "--",
        ]
    }

    /// Runs a shell's command inside, with all that may be done to the network there.
    func run(_ command: String) throws {
        count += 1
        try commands.write(contentsOf: Data((command + "\n").utf8))
        func results() -> [Substring] {
            keeper.output.split(separator: "\n").filter { $0 == "done" || $0 == "failed" }
        }
        try eventually("\(command) has run") { results().count == count }
        try #require(results().last == "done", "\(command): \(keeper.output)")
    }

    /// Whether the process is told of changes of this network (`/proc/net/netlink`).
    func tells(_ process: pid_t) throws -> Bool {
        try String(contentsOfFile: "/proc/\(pid)/net/netlink", encoding: .utf8)
            .split(separator: "\n").contains { line in
                let columns = line.split(separator: " ")
                return columns[2] == "\(process)" && columns[3].contains { $0 != "0" }
            }
    }
}
