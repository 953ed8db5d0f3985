import Foundation
import Glibc
import Testing

@Suite("canopyctl doctor", .timeLimit(.minutes(25)))
struct DoctorTests {
    /// What the doctor says of one thing, and how it ended.
    private struct Diagnosis {
        let exitCode: Int32
        private let findings: [JSONObject]

        init(_ stage: Stage, _ changes: [String: String?] = [:]) throws {
            var environment = stage.desktop.environment
            environment["CANOPY_URL"] = stage.server.url
            for (name, value) in changes { environment[name] = value }
            let program = try Program(
                "canopyctl", ["doctor", "--json"], environment: environment, input: "")
            exitCode = try program.end()
            let report = try JSONObject(program.output)
            #expect(try report.number("version") == 1)
            findings = try report.objects("findings")
            let isWell = try findings.allSatisfy { try $0.text("verdict") != "failed" }
            let saysWell = try report.truth("ok")
            #expect(saysWell == isWell && (exitCode == 0) == isWell)
        }

        func verdict(_ check: String) throws -> String {
            try finding(check).text("verdict")
        }

        func finding(_ check: String) throws -> JSONObject {
            try #require(
                try findings.first { try $0.text("check") == check }, "no finding on \(check)")
        }

        func expect(
            _ check: String, failedWith part: String, fix: String,
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let finding = try finding(check)
            #expect(try finding.text("verdict") == "failed", sourceLocation: sourceLocation)
            let (detail, cure) = (try finding.text("detail"), try finding.text("fix"))
            #expect(detail.contains(part), "\(detail)", sourceLocation: sourceLocation)
            #expect(cure.contains(fix), "\(cure)", sourceLocation: sourceLocation)
        }
    }

    @Test("On a machine where all is well nothing is found, and nothing is left behind")
    func well() throws {
        let stage = try Stage()
        try stage.logIn()
        let diagnosis = try Diagnosis(stage)
        for check in [
            "runtime_directory", "socket", "daemon", "version", "configuration",
            "state_directory", "exchange", "message_bus", "secret_service", "collection",
            "unlocked", "probe", "server", "clock", "profile",
        ] {
            #expect(try diagnosis.verdict(check) == "ok", "\(check)")
        }
        // D20: which program it is.
        #expect(
            try diagnosis.finding("secret_service").text("detail").hasPrefix("gnome-keyring"))
        #expect(try stage.desktop.items(ofSchema: "com.canopy-io.canopyd.probe") == 0)
        #expect(try stage.server.refreshes() == 0)
        _ = try stage.goodToken()
    }

    @Test("Another back end of libsecret is refused, by the doctor and by an exchange")
    func otherBackEnd() throws {
        let stage = try Stage()
        let diagnosis = try Diagnosis(stage, ["SECRET_BACKEND": "file"])
        try diagnosis.expect(
            "secret_service", failedWith: "SECRET_BACKEND",
            fix: "systemctl --user unset-environment SECRET_BACKEND")
        try stage.killDaemon()
        try stage.startDaemon(with: ["SECRET_BACKEND": "file"])
        let answer = try stage.tryLogin()
        #expect(answer.status == 503)
        #expect(try answer.code == "keyring_unavailable")
        #expect(try answer.json.text("detail").contains("SECRET_BACKEND"))
        #expect(try answer.json.text("fix").hasPrefix("systemctl --user unset-environment"))
        // Nothing was put anywhere.
        #expect(try stage.desktop.items(ofSchema: "com.canopy-io.canopyd.session") == 0)
        try stage.killDaemon()
        try stage.startDaemon()
        try stage.logIn()
    }

    @Test("A service that is not known is named, and what is assumed of it; so does status")
    func unknownService() throws {
        let stage = try Stage(keyring: .double())
        try stage.logIn()
        let detail = try Diagnosis(stage).finding("secret_service").text("detail")
        #expect(detail.contains("is not known to canopyd"), "\(detail)")
        let keyring = try stage.ask("GET", "/v1/status").json.object("keyring")
        #expect(try keyring.text("limit").contains("is not known to canopyd"))
    }

    @Test("Without a daemon everything else is looked at all the same")
    func daemonDown() throws {
        let stage = try Stage()
        try stage.killDaemon()
        let diagnosis = try Diagnosis(stage)
        try diagnosis.expect(
            "daemon", failedWith: "cannot be reached",
            fix: access("/run/systemd/system", F_OK) == 0
                ? "systemctl --user start canopyd" : "canopyd &")
        #expect(diagnosis.exitCode == 3)
        #expect(try diagnosis.verdict("probe") == "ok")
        #expect(try diagnosis.verdict("server") == "ok")
    }

    @Test("A locked keyring is told by asking it, and no prompt is raised")
    func locked() throws {
        let stage = try Stage()
        try stage.desktop.lock()
        let diagnosis = try Diagnosis(stage)
        try diagnosis.expect("unlocked", failedWith: "locked", fix: "gnome-keyring-daemon")
        #expect(diagnosis.exitCode == 5)
    }

    @Test("A service that would ask before it makes the probe's item is told, and not let")
    func askingService() throws {
        let stage = try Stage(
            keyring: .double(MockSecretService.Shape(members: ["item_needs_prompt": true])))
        let finding = try Diagnosis(stage).finding("probe")
        #expect(try finding.text("verdict") == "failed")
        #expect(try finding.text("detail").contains("locked"))
        let calls = try stage.double.calls()
        #expect(calls.count("CreateItem") == 1)
        #expect(calls.count("Prompt") == 0)
    }

    @Test("E10: a keyring whose owner has gone, or a bus, is named with what brings it back")
    func noKeyring() throws {
        let stage = try Stage()
        try stage.desktop.stopKeyring()
        try Diagnosis(stage).expect(
            "secret_service", failedWith: "no program offers the Secret Service",
            fix: "apt-get install gnome-keyring")
        try stage.desktop.stopBus()
        let manages = access("/run/systemd/system", F_OK) == 0
        try Diagnosis(stage).expect(
            "message_bus", failedWith: "onnect",
            fix: manages ? "systemctl --user restart dbus" : "dbus-run-session")
        let unset = try Diagnosis(stage, ["DBUS_SESSION_BUS_ADDRESS": nil])
        try unset.expect(
            "message_bus", failedWith: "DBUS_SESSION_BUS_ADDRESS",
            fix: manages ? "dbus-user-session" : "dbus-run-session")
        #expect(unset.exitCode == 5)
    }

    @Test("A keyring that hangs does not hang the doctor")
    func hanging() throws {
        let stage = try Stage()
        try stage.desktop.freezeKeyring()
        let diagnosis = try Diagnosis(stage)
        try stage.desktop.thawKeyring()
        #expect(diagnosis.exitCode == 5)
        #expect(try diagnosis.verdict("server") == "ok")
    }

    @Test("A server that is down, or is not Canopy, is told from one that answers")
    func server() throws {
        let stage = try Stage()
        try stage.server.plan("status-403-html", #","on":"me","count":1"#)
        try Diagnosis(stage).expect("server", failedWith: "not Canopy's", fix: "curl -sSv")
        #expect(try Diagnosis(stage).verdict("server") == "ok")
        try stage.server.end()
        let down = try Diagnosis(stage)
        try down.expect("server", failedWith: "Failed to connect", fix: "curl -sSv")
        #expect(down.exitCode == 6)
    }

    @Test("A clock that is wrong is compared with the server's, and told by how much")
    func clock() throws {
        let stage = try Stage()
        try stage.server.advance(seconds: 7200)
        let finding = try Diagnosis(stage).finding("clock")
        #expect(try finding.text("verdict") == "warning")
        let detail = try finding.text("detail")
        // By how much, both times, and which of the two may be wrong.
        #expect(detail.contains(/is (119 min|2 h) behind the server's: \S+Z here, \S+Z at http/))
        #expect(detail.contains("If it is right here, the server's is wrong"))
        #expect(try finding.text("fix") == "sudo timedatectl set-ntp true")
    }

    @Test("What others may enter or use is told with the command that closes it")
    func permissions() throws {
        let stage = try Stage()
        try stage.logIn()
        let environment = stage.desktop.environment
        let runtime = try #require(environment["XDG_RUNTIME_DIR"])
        let socket = runtime + "/canopyd/agent.sock"
        chmod(socket, 0o666)
        try Diagnosis(stage).expect(
            "socket", failedWith: "other users", fix: "chmod 600 \(socket)")
        chmod(socket, 0o600)
        chmod(runtime, 0o755)
        try Diagnosis(stage).expect(
            "runtime_directory", failedWith: "other users", fix: "chmod 700 \(runtime)")
        chmod(runtime, 0o700)
        let state = try #require(environment["XDG_STATE_HOME"]) + "/canopyd"
        chmod(state, 0o500)
        try Diagnosis(stage).expect(
            "state_directory", failedWith: "cannot be read and written", fix: "chmod u+rwx")
        chmod(state, 0o700)
        let relative = try Diagnosis(stage, ["XDG_RUNTIME_DIR": "relative"])
        #expect(relative.exitCode == 3)
        #expect(try relative.verdict("runtime_directory") == "failed")
        let long = "/tmp/" + String(repeating: "x", count: 150)
        try Diagnosis(stage, ["CANOPYD_SOCKET": long]).expect(
            "socket", failedWith: "107", fix: "XDG_RUNTIME_DIR")
    }

    @Test("Policies are told of: whose profiles they guard, and what they name that is not there")
    func policies() throws {
        let stage = try Stage()
        let file = "conf/canopyd/canopyd.conf"
        try stage.desktop.directory.write("[policy work]\nAllowUnit=a.service\n", file)
        let finding = try Diagnosis(stage).finding("configuration")
        #expect(try finding.text("verdict") == "ok")
        #expect(try finding.text("detail").contains("[policy] says who may use: work"))
        try stage.desktop.directory.write("[policy work]\nAllowExecutable=/none\n", file)
        let warning = try Diagnosis(stage).finding("configuration")
        #expect(try warning.text("verdict") == "warning")
        #expect(try warning.text("detail").contains("/none: there is no such program"))
    }

    @Test("A trust root that cannot be used is told before the servers that are not reached for it")
    func trustRoot() throws {
        let stage = try Stage()
        let directory = stage.desktop.directory
        let path = directory.path + "/ca.pem"
        try directory.write("[network]\nCAFile=\(path)\n", "conf/canopyd/canopyd.conf")
        try Diagnosis(stage).expect(
            "configuration",
            failedWith: "canopyd.conf: [network]: CAFile=\(path): there is no such file",
            fix: "canopyd.conf")
        try directory.write("0\u{82}", "ca.pem")
        let diagnosis = try Diagnosis(stage)
        try diagnosis.expect(
            "configuration", failedWith: "no certificate",
            fix: "openssl x509 -inform der -in \(path)")
        #expect(diagnosis.exitCode == 1)
        try directory.write("-----BEGIN CERTIFICATE-----\n", "ca.pem")
        #expect(try Diagnosis(stage).verdict("configuration") == "ok")
    }

    @Test("A mistake in the configuration is told with its line")
    func configuration() throws {
        let stage = try Stage()
        let directory = try #require(stage.desktop.environment["XDG_CONFIG_HOME"]) + "/canopyd"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        try "[rotation]\nMode=sometimes\n".write(
            toFile: directory + "/canopyd.conf", atomically: true, encoding: .utf8)
        try Diagnosis(stage).expect(
            "configuration", failedWith: "canopyd.conf:2:", fix: "canopyd.conf")
        try "[rotation]\nMod=ahead\n".write(
            toFile: directory + "/canopyd.conf", atomically: true, encoding: .utf8)
        #expect(try Diagnosis(stage).verdict("configuration") == "warning")
    }

    @Test("A profile that needs a new sign-in is named")
    func profile() throws {
        let stage = try Stage()
        try stage.logIn("work")
        try stage.server.revokeSessions(of: .ada)
        #expect(try stage.refresh("work").status == 401)
        let diagnosis = try Diagnosis(stage)
        try diagnosis.expect(
            "profile", failedWith: "work", fix: "canopyctl login --profile work")
        #expect(diagnosis.exitCode == 4)
    }

    @Test("One that is there and lets nobody in is not to be started, but to go first")
    func daemonFull() throws {
        let stage = try Stage()
        try stage.desktop.directory.write("[limits]\nConnections=2\n", "conf/canopyd/canopyd.conf")
        try stage.killAndRestart()
        let clients = try (0..<2).map { _ in try stage.daemon.connect() }
        for client in clients { try client.expectService() }
        try Diagnosis(stage).expect(
            "daemon", failedWith: "Connections=",
            fix: access("/run/systemd/system", F_OK) == 0
                ? "systemctl --user restart canopyd" : "pkill -KILL -u \(getuid()) -x canopyd")
    }

    @Test("For people there is a line for each thing, and one that sums up")
    func words() throws {
        let stage = try Stage()
        try stage.killDaemon()
        let run = try stage.canopyctl("doctor")
        #expect(run.exitCode == 3)
        #expect(run.output.contains("FAILED   daemon: "))
        #expect(
            run.output.contains("mend it: systemctl --user start canopyd")
                || run.output.contains("mend it: canopyd &"))
        #expect(run.output.contains("failed; mend the first one first"))
        #expect(!run.output.contains("\u{1B}["))
    }
}
