import Foundation
import Glibc
import Testing

/// A network of the calling thread's own, with loopback alone: whatever the thread starts and connects
/// to is in it, and replies can be made to vanish there.
struct PrivateNetwork {
    /// Whether the kernel lets us have one: root's privilege, and not that of every container's root.
    static let isAllowed = runs("/usr/bin/unshare", ["--net", "true"])

    /// CLONE_NEWNET.
    private static let networkNamespace: Int32 = 0x4000_0000

    /// Runs the body in a new network, on this thread.
    static func with(_ body: (PrivateNetwork) throws -> Void) throws {
        let home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
        try #require(home >= 0)
        defer { close(home) }
        let unshare = try function("unshare", as: (@convention(c) (Int32) -> Int32).self)
        let setns = try function("setns", as: (@convention(c) (Int32, Int32) -> Int32).self)
        try #require(unshare(networkNamespace) == 0)
        defer {
            // The thread goes on to other tests.
            precondition(setns(home, networkNamespace) == 0)
        }
        try run("/usr/sbin/ip", ["link", "set", "lo", "up"])
        let network = PrivateNetwork()
        try network.apply(
            """
            add table ip dark
            add chain ip dark arriving { type filter hook input priority 0; }
            """)
        try body(network)
    }

    /// Packets that match are gone from now on, and those of earlier calls are not any more.
    func drop(_ matches: String...) throws {
        let rules = matches.map { "add rule ip dark arriving \($0) drop\n" }
        try apply("flush chain ip dark arriving\n" + rules.joined())
    }

    /// The client's port of the one connection to `port` that is open beside `others`.
    func client(of port: UInt16, beside others: Set<Int>) throws -> Int {
        var found: Set<Int> = []
        try eventually("one more connection to the server is open") {
            found = try clients(of: port).subtracting(others)
            return found.count == 1
        }
        return try #require(found.first)
    }

    /// The clients' ports of the connections to `port` that are open.
    func clients(of port: UInt16) throws -> Set<Int> {
        Set(
            try connections().split(separator: "\n").dropFirst().compactMap { line in
                let fields = line.split(separator: " ")
                let isOpen = fields[3] == "01"
                guard isOpen, Self.port(fields[1]) == Int(port) else { return nil }
                return Self.port(fields[2])
            })
    }

    /// One of glibc's that its headers show to GNU programs alone.
    private static func function<Function>(
        _ name: String, as type: Function.Type
    ) throws -> Function {
        unsafeBitCast(try #require(dlsym(nil, name)), to: type)
    }

    /// The kernel's table, to its very end: Foundation takes a short read for that.
    private func connections() throws -> String {
        // The thread's own network: that of "self" is the process's.
        let table = open("/proc/thread-self/net/tcp", O_RDONLY | O_CLOEXEC)
        try #require(table >= 0)
        defer { close(table) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(table, &buffer, buffer.count)
            try #require(count >= 0)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }

    private static func port(_ address: Substring) -> Int? {
        address.split(separator: ":").last.flatMap { Int($0, radix: 16) }
    }

    private func apply(_ commands: String) throws {
        try Self.run("/usr/sbin/nft", ["-f", "-"], input: commands)
    }

    private static func run(
        _ path: String, _ arguments: [String], input: String = ""
    ) throws {
        let program = try Program(path, arguments, environment: [:], input: input)
        let exitCode = try program.end()
        try #require(exitCode == 0, "\(path): \(program.output)")
    }

    private static func runs(_ path: String, _ arguments: [String]) -> Bool {
        do {
            return try Program(path, arguments, environment: ["PATH": "/usr/bin:/bin"]).end() == 0
        } catch {
            return false
        }
    }
}
