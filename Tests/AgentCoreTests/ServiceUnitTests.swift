import AgentCore
import Foundation
import Testing

@Suite("What the service manager makes of the unit")
struct ServiceUnitTests {
    /// What `systemctl show` prints of the unit as it is shipped, changed by `changes`.
    private static func unit(_ changes: [String: String?] = [:]) -> ServiceUnit {
        var values: [String: String] = [
            "LoadState": "loaded", "ActiveState": "active", "NeedDaemonReload": "no",
            "DropInPaths": "", "FileDescriptorStoreMax": "1024", "NFileDescriptorStore": "2",
            "KillMode": "control-group", "OOMPolicy": "continue", "TimeoutStopUSec": "5min",
            "StartLimitIntervalUSec": "0",
        ]
        for (name, value) in changes { values[name] = value }
        return ServiceUnit(values.map { "\($0)=\($1)\n" }.joined())
    }

    private static func lines(_ changes: [String: String?], profiles: Int? = 2) -> [String?] {
        unit(changes).faults(profiles: profiles).map { $0.setting?.line }
    }

    @Test("The unit as it is shipped has no fault, and what is shipped is what is asked for")
    func shipped() throws {
        #expect(Self.unit().faults(profiles: 2).isEmpty)
        #expect(Self.unit().isLoaded && Self.unit().isActive && Self.unit().dropIns.isEmpty)
        let path = #filePath.replacing(
            "Tests/AgentCoreTests/ServiceUnitTests.swift", with: "systemd/canopyd.service")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        for line in [
            "FileDescriptorStoreMax=\(Limits.profiles)", "KillMode=control-group",
            "OOMPolicy=continue", "TimeoutStopSec=\(Limits.unitStopSeconds / 60)min",
            "StartLimitIntervalSec=0", "FileDescriptorStorePreserve=yes",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
    }

    @Test("Each setting that would lose a session is a fault, with the line that mends it")
    func settings() {
        #expect(Self.lines(["KillMode": "mixed"]) == ["KillMode=control-group"])
        #expect(Self.lines(["KillMode": "process"]) == ["KillMode=control-group"])
        #expect(Self.lines(["OOMPolicy": "stop"]) == ["OOMPolicy=continue"])
        #expect(Self.lines(["TimeoutStopUSec": "1min 30s"]) == ["TimeoutStopSec=300"])
        #expect(Self.lines(["TimeoutStopUSec": "infinity"]) == [])
        #expect(Self.lines(["StartLimitIntervalUSec": "10s"]) == ["StartLimitIntervalSec=0"])
        #expect(Self.lines(["FileDescriptorStoreMax": "0"]) == ["FileDescriptorStoreMax=1024"])
        #expect(
            Self.lines(["FileDescriptorStoreMax": "0"], profiles: nil)
                == ["FileDescriptorStoreMax=1024"])
        #expect(
            Self.lines(["FileDescriptorStoreMax": "1"], profiles: 1) == [])
        #expect(
            Self.lines(["FileDescriptorStoreMax": "1", "NFileDescriptorStore": "1"])
                == ["FileDescriptorStoreMax=1024"])
    }

    @Test("Slots that the manager did not keep are missed, where canopyd runs as the unit")
    func slots() {
        #expect(Self.lines(["NFileDescriptorStore": "1"]) == [nil])
        #expect(Self.lines(["NFileDescriptorStore": "1"], profiles: nil) == [])
        #expect(Self.lines(["NFileDescriptorStore": "0", "ActiveState": "inactive"]) == [])
        #expect(Self.lines(["NFileDescriptorStore": "7"]) == [])
    }

    @Test("What the manager does not say is no fault; files that it has not read are the first one")
    func unsaid() {
        let unsaid = [
            "FileDescriptorStoreMax", "NFileDescriptorStore", "KillMode", "OOMPolicy",
            "TimeoutStopUSec", "StartLimitIntervalUSec",
        ]
        for name in unsaid { #expect(Self.lines([name: nil]) == [], "\(name)") }
        #expect(Self.lines(["NeedDaemonReload": "yes", "KillMode": "mixed"]) == [nil])
        for text in ["", "=", "nonsense\n\n", "KillMode"] {
            #expect(ServiceUnit(text).faults(profiles: 1).isEmpty && !ServiceUnit(text).isLoaded)
        }
    }

    @Test("The cure is one drop-in for all that is set wrong, and else a restart")
    func cure() {
        let faults = Self.unit([
            "KillMode": "mixed", "FileDescriptorStoreMax": "0", "StartLimitIntervalUSec": "10s",
        ]).faults(profiles: 1)
        let cure = ServiceUnit.cure(for: faults)
        #expect(
            cure.contains(
                #"printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nFileDescriptorStoreMax=1024\nKillMode=control-group\n'"#
            ), "\(cure)")
        let restart = ServiceUnit.cure(
            for: Self.unit(["NFileDescriptorStore": "0"]).faults(profiles: 1))
        #expect(!restart.contains("printf") && restart.hasSuffix("restart canopyd.service"))
    }

    @Test("A time is read as systemctl writes it")
    func times() {
        for (text, seconds) in [
            ("0", 0), ("5min", 300), ("1min 30s", 90), ("1h 100ms", 3600), ("999us", 0),
            ("1w 2d 3h 4min 5s 6ms 7us", 788_645), ("infinity", .max), ("1y", 31_557_600),
        ] as [(String, Int64)] {
            #expect(ServiceUnit.seconds(in: text) == seconds, "\(text)")
        }
        for text in ["", "5", "min", "-1s", "5 min", "1e9s", "99999999999999999999s"] {
            #expect(ServiceUnit.seconds(in: text) == nil, "\(text)")
        }
    }
}
