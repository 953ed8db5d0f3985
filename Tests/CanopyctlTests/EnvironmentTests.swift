import AgentCore
import Foundation
import Glibc
import LinuxSystem
import Testing

@Suite("The environment says where things are")
struct EnvironmentTests {
    private static func environment(
        _ variables: [String: String], userID: UInt32 = getuid(), root: String = "/nowhere"
    ) -> Environment {
        Environment(userID: userID, runtimeRoot: root) { variables[$0] }
    }

    @Test("CANOPYD_SOCKET wins, and counts as unset when empty")
    func socketVariable() throws {
        let both = ["CANOPYD_SOCKET": "/s", "XDG_RUNTIME_DIR": "/run/x"]
        #expect(try Self.environment(both).agentSocketPath == "/s")
        let empty = ["CANOPYD_SOCKET": "", "XDG_RUNTIME_DIR": "/run/x//"]
        #expect(try Self.environment(empty).agentSocketPath == "/run/x/canopyd/agent.sock")
        #expect(
            try Self.environment(empty).credentialSocketPath == "/run/x/canopyd/credential.sock")
    }

    @Test("Without XDG_RUNTIME_DIR, a directory of ours under /run/user is used, and only ours")
    func fallback() throws {
        let root = NSTemporaryDirectory() + UUID().uuidString
        let directory = "\(root)/\(getuid())"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: root) }
        for variables in [[:], ["XDG_RUNTIME_DIR": "relative"]] {
            #expect(
                try Self.environment(variables, root: root).agentSocketPath
                    == directory + "/canopyd/agent.sock")
        }
        let other = getuid() + 1
        try FileManager.default.createDirectory(
            atPath: "\(root)/\(other)", withIntermediateDirectories: true)
        #expect(throws: Environment.Unusable.foreignRuntimeDirectory(tried: "\(root)/\(other)")) {
            try Self.environment([:], userID: other, root: root).agentSocketPath
        }
        #expect(
            throws: Environment.Unusable.noRuntimeDirectory(tried: "/nowhere/\(getuid())")
        ) { try Self.environment([:]).agentSocketPath }
    }

    @Test("State and configuration follow XDG, else the home directory, and relative paths nothing")
    func directories() throws {
        let home = Self.environment(["HOME": "/h/", "XDG_STATE_HOME": "s", "XDG_CONFIG_HOME": ""])
        #expect(try home.stateDirectory == "/h/.local/state/canopyd")
        #expect(try home.configurationFile == "/h/.config/canopyd/canopyd.conf")
        let set = Self.environment(["XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"])
        #expect(try set.stateDirectory == "/s/canopyd")
        #expect(try set.configurationFile == "/c/canopyd/canopyd.conf")
        #expect(throws: Environment.Unusable.noHome) { try Self.environment([:]).stateDirectory }
    }

    @Test("The session bus is where the environment says, else in the runtime directory")
    func sessionBus() {
        let named = Self.environment(["DBUS_SESSION_BUS_ADDRESS": "unix:path=/b"])
        #expect(named.sessionBusAddress == "unix:path=/b")
        let usual = Self.environment(["XDG_RUNTIME_DIR": "/run/x y"])
        #expect(usual.sessionBusAddress == "unix:path=/run/x%20y/bus")
        #expect(
            Self.environment(["DBUS_SESSION_BUS_ADDRESS": ""]).sessionBusAddress
                == "unix:path=/nowhere/\(getuid())/bus")
    }

    @Test("A socket path holds 107 bytes and no more")
    func socketAddress() throws {
        let longest = "/" + String(repeating: "é", count: 53)
        #expect(try SocketAddress(path: longest).path == longest)
        #expect(throws: SocketAddress.Unusable.tooLong(path: longest + "x", bytes: 108)) {
            try SocketAddress(path: longest + "x")
        }
        #expect(throws: SocketAddress.Unusable.empty) { try SocketAddress(path: "") }
        #expect(throws: SocketAddress.Unusable.containsNUL) { try SocketAddress(path: "a\0b") }
    }
}
