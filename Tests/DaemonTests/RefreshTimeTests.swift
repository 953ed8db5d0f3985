import Foundation
import Testing

/// Who keeps a token keeps it until its `refresh_at`.
@Suite("When a token is to be asked for again", .timeLimit(.minutes(25)))
struct RefreshTimeTests {
    @Test("On demand a rotation is a day away, and a token is not kept past its end")
    func onDemand() throws {
        let stage = try Stage(lifetime: 900)
        try stage.killDaemon()
        try stage.desktop.directory.write(
            "[rotation]\nMode=on-demand\n", "conf/canopyd/canopyd.conf")
        try stage.startDaemon()
        try stage.logIn()
        try expectWithinItsLife(try stage.goodToken())
        // The profile's is when canopyd rotates by itself.
        #expect(try stage.profile().text("refresh_at") > stage.profile().text("expires_at"))
        let kept = try stage.canopyctl("kube-credential")
        #expect(kept.exitCode == 0)
        let end = try JSONObject(kept.output).object("status").text("expirationTimestamp")
        #expect(end <= (try stage.profile().text("expires_at")))
    }

    @Test("A refusal that is looked at again after the token's end does not prolong it")
    func refused() throws {
        let stage = try Stage(lifetime: 600)
        try stage.logIn()
        try stage.server.plan("echo-body", #","count":0"#)
        #expect(try stage.refresh().code == "refused")
        #expect(try stage.profile().text("refresh_at") > stage.profile().text("expires_at"))
        try expectWithinItsLife(try stage.goodToken())
    }

    @Test("What is never rotated by itself has no time for it, and not one at the end of time")
    func never() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.server.plan("no-refresh-token")
        #expect(try stage.refresh().code == "key_not_native")
        #expect(try !stage.profile().has("refresh_at"))
        try expectWithinItsLife(try stage.goodToken())
        let status = try stage.canopyctl("status")
        #expect(status.exitCode == 0 && !status.output.contains(" d "), "\(status.output)")
    }

    private func expectWithinItsLife(
        _ token: JSONObject, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        // Of the same form and zone, so that the order of the texts is that of the times.
        #expect(
            try token.text("refresh_at") <= token.text("expires_at"),
            sourceLocation: sourceLocation)
    }
}
