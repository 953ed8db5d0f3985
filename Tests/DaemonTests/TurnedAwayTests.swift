import AgentCore
import Foundation
import Glibc
import Testing

@Suite("A client that is one too many gets to read so")
struct TurnedAwayTests {
    private let daemon: RunningDaemon
    private let only: RawClient

    /// More than a socket's buffer takes: whoever sends it is still sending when it is refused.
    private static let bodyBytes = 900_000

    init() throws {
        daemon = try RunningDaemon(configuration: "[limits]\nConnections=1\n")
        only = try daemon.connect()
        try only.expectService()
    }

    @Test("curl reads the answer, though it is sending a long body")
    func curl() throws {
        try daemon.directory.write(String(repeating: "x", count: Self.bodyBytes), "body")
        let curl = try Program(
            "/usr/bin/curl",
            [
                "--silent", "--show-error", "--unix-socket", daemon.socketPath, "--data-binary",
                "@\(daemon.directory.path)/body", "--write-out", " %{http_code}",
                "http://canopyd/v1/profiles/default/login",
            ], environment: [:])
        #expect(try curl.end() == 0)
        #expect(curl.output.contains(#""code":"too_many_connections""#), "\(curl.output)")
        #expect(curl.output.hasSuffix(" 503"), "\(curl.output)")
    }

    @Test("Python's http.client reads the answer, with a long body, and a hundred times without")
    func python() throws {
        let python = try Program(
            "/usr/bin/python3",
            [
                "-c",
                """
                import http.client, socket, sys
                class Connection(http.client.HTTPConnection):
                    def connect(self):
                        self.sock = socket.socket(socket.AF_UNIX)
                        self.sock.connect(sys.argv[1])
                def ask(*request):
                    connection = Connection("canopyd")
                    connection.request(*request)
                    answer = connection.getresponse()
                    said = answer.read()
                    connection.close()
                    assert answer.status == 503 and b"too_many_connections" in said, (answer.status, said)
                ask("POST", "/v1/profiles/default/login", b"x" * int(sys.argv[2]))
                for _ in range(100):
                    ask("GET", "/v1/token")
                """, daemon.socketPath, String(Self.bodyBytes),
            ], environment: [:])
        #expect(try python.end() == 0, "\(python.output)")
    }

    @Test("Of many that stay though they are refused the first are cut off, and in time the others")
    func bounded() throws {
        // All come at once, so that no time passes between the first and the last.
        kill(daemon.pid, SIGSTOP)
        let clients = try (0..<Limits.farewells + 8).map { _ in try daemon.connect() }
        kill(daemon.pid, SIGCONT)
        for client in clients { #expect(try client.answer().status == 503) }
        for client in clients.prefix(8) { #expect(client.isCutOff) }
        // Who is in is served meanwhile.
        try only.expectService()
        try eventually(within: 60, "all of them are cut off") { clients.allSatisfy(\.isCutOff) }
        try only.expectService()
    }
}
