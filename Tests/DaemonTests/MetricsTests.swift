import Foundation
import Testing

@Suite("Metrics", .timeLimit(.minutes(25)))
struct MetricsTests {
    /// Reads OpenMetrics as Prometheus's own Python client does, and tells the families, one a
    /// line: name, type, and the labels of its samples.
    private static let parser = """
        import sys
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
        for family in text_string_to_metric_families(sys.stdin.read()):
            labels = sorted({label for sample in family.samples for label in sample.labels})
            print(family.name, family.type, *labels)
        """

    @Test("Prometheus's own parser takes the metrics, and finds what is promised")
    func openMetrics() throws {
        let stage = try Stage()
        try stage.logIn()
        try stage.expectRotation()
        _ = try stage.ask("GET", "/v1/nothing")
        let client = try stage.daemon.connect()
        try client.send("GET /v1/metrics HTTP/1.1\r\n\r\n")
        let answer = try client.answer()
        #expect(
            answer.headers["content-type"]
                == "application/openmetrics-text; version=1.0.0; charset=utf-8")
        let program = try Program(
            "/usr/bin/python3", ["-c", Self.parser], environment: [:], input: answer.body)
        #expect(try program.end() == 0, "\(program.output)")
        #expect(
            Set(program.output.split(separator: "\n")) == [
                "canopyd_build info version", "canopyd_profile_state gauge profile state",
                "canopyd_token_expiry_timestamp_seconds gauge profile",
                "canopyd_rotations counter outcome profile",
                "canopyd_exchange_duration_seconds histogram job le",
                "canopyd_requests counter route status",
                "canopyd_request_duration_seconds histogram le", "canopyd_connections gauge",
                "canopyd_keyring_state gauge state",
            ])
        #expect(answer.body.contains("canopyd_rotations_total{profile=\"default\",outcome=\"ok\"}"))
        #expect(answer.body.contains("canopyd_requests_total{route=\"login\",status=\"200\"} 1\n"))
        #expect(answer.body.contains("canopyd_requests_total{route=\"none\",status=\"404\"} 1\n"))
    }
}
