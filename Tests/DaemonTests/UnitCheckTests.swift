import Foundation
import Glibc
import Testing

/// What the service manager says is made up here; `scripts/systemd-test` asks a real one.
@Suite("The doctor looks at how the service manager runs canopyd", .timeLimit(.minutes(25)))
struct UnitCheckTests {
    /// The properties of the unit as it is shipped, for one profile.
    private static let shipped = [
        "LoadState=loaded", "ActiveState=active", "NeedDaemonReload=no", "DropInPaths=",
        "FileDescriptorStoreMax=1024", "NFileDescriptorStore=1", "KillMode=control-group",
        "OOMPolicy=continue", "TimeoutStopUSec=5min", "StartLimitIntervalUSec=0",
    ]

    /// The doctor's finding, with a systemctl that prints these properties in place of the unit's.
    private func finding(_ stage: Stage, _ changes: String..., script: String? = nil) throws
        -> JSONObject
    {
        let names = changes.map { $0.prefix { $0 != "=" } }
        let kept = Self.shipped.filter { line in !names.contains(line.prefix { $0 != "=" }) }
        let lines = (kept + changes).joined(separator: "\n")
        let directory = stage.desktop.directory
        try directory.writeProgram(
            script
                ?? """
                #!/bin/sh
                [ "$1 $3 $4" = "--user show canopyd.service" ] || exit 1
                cat <<'END'
                \(lines)
                END
                """, "bin/systemctl")
        var environment = stage.desktop.environment
        environment["CANOPY_URL"] = stage.server.url
        environment["PATH"] = directory.path + "/bin:/usr/bin:/bin"
        let program = try Program(
            "canopyctl", ["doctor", "--json"], environment: environment, input: "")
        let exitCode = try program.end()
        let findings = try JSONObject(program.output).objects("findings")
        let found = try #require(try findings.first { try $0.text("check") == "unit" })
        #expect(try (found.text("verdict") == "failed") == (exitCode != 0))
        return found
    }

    @Test("A unit that is as shipped is well; what a drop-in breaks is told, with what mends it")
    func broken() throws {
        let stage = try Stage()
        try stage.logIn()
        #expect(try finding(stage).text("verdict") == "ok")
        let lost = try finding(
            stage, "FileDescriptorStoreMax=0", "NFileDescriptorStore=0", "KillMode=mixed",
            "DropInPaths=/home/ada/.config/systemd/user/canopyd.service.d/my.conf")
        #expect(try lost.text("verdict") == "failed")
        let detail = try lost.text("detail")
        for part in ["FileDescriptorStoreMax=0", "KillMode=mixed", "canopyd.service.d/my.conf"] {
            #expect(detail.contains(part), "\(detail)")
        }
        let fix = try lost.text("fix")
        #expect(fix.contains(#"[Service]\nFileDescriptorStoreMax=1024\nKillMode=control-group\n"#))
        #expect(fix.hasSuffix("systemctl --user restart canopyd.service"))
        // One slot fewer than there are profiles.
        let missing = try finding(stage, "NFileDescriptorStore=0")
        #expect(try missing.text("detail").contains("0 of 1 successor slots"))
    }

    @Test("Without a unit, a manager, or an answer of it there is nothing to look at")
    func nobody() throws {
        let stage = try Stage()
        #expect(try finding(stage, "LoadState=not-found").text("verdict") == "skipped")
        for script in ["#!/bin/sh\nexit 1\n", "#!/nowhere\n", "#!/bin/sh\nexec sleep 600\n"] {
            #expect(try finding(stage, script: script).text("verdict") == "skipped", "\(script)")
        }
    }

    @Test("E04: a passphrase that the system has not unsealed is told, with what asks for it again")
    func unsealing() throws {
        let stage = try Stage()
        func finding() throws -> JSONObject {
            let findings = try JSONObject(stage.canopyctl("doctor", "--json").output)
                .objects("findings")
            return try #require(try findings.first { try $0.text("check") == "unsealing" })
        }
        #expect(try finding().text("verdict") == "skipped")
        try stage.desktop.directory.write(
            "", "conf/systemd/user/gnome-keyring-daemon.service.d/50-canopyd-headless.conf")
        #expect(try finding().text("verdict") == "failed")
        #expect(
            try finding().text("fix").hasPrefix(
                "sudo systemctl restart canopyd-keyring@\(getuid()).service"))
    }
}
