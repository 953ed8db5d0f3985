import CLinux
import Foundation
import Glibc
import Testing

/// HTTPS servers on loopback with HTTP/2, before the sandbox or in its place: Apache, and nghttpd, which
/// speaks nothing but HTTP/2.
final class TLSFront {
    /// How a server behaves.
    enum Manner: Hashable, CustomStringConvertible {
        /// Hands on to the sandbox, in HTTP/1.1 or HTTP/2, as the client likes.
        case serves
        /// Sends the client elsewhere, with this status.
        case redirects(Int)
        /// Offers HTTP/2 in the handshake and nothing else.
        case insistsOnHTTP2
        /// Takes any handshake, and answers in HTTP/2 whatever is said.
        case answersInHTTP2

        static let redirections = [301, 302, 303, 307, 308]
        static let all =
            [.serves, .insistsOnHTTP2, .answersInHTTP2] + redirections.map { redirects($0) }

        var description: String {
            switch self {
            case .serves: "serves"
            case .redirects(let status): "redirects with \(status)"
            case .insistsOnHTTP2: "insists on HTTP/2"
            case .answersInHTTP2: "answers in HTTP/2"
            }
        }
    }

    /// The port of each.
    let ports: [Manner: UInt16]

    /// The certificate that all of them have, which signed itself.
    let certificate: String

    private let directory: TestDirectory
    private var programs: [Program] = []

    init(to sandbox: UInt16) throws {
        directory = try TestDirectory()
        let (path, key) = (directory.path, directory.path + "/key.pem")
        certificate = path + "/certificate.pem"
        let signing = try Program(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "30", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", key, "-out", certificate,
            ], environment: [:])
        try #require(signing.end() == 0, "\(signing.output)")
        var ports: [Manner: UInt16] = [:]
        for manner in Manner.all { ports[manner] = try LoopbackPort.free() }
        self.ports = ports
        let (elsewhere, plain) = try (LoopbackPort.free(), LoopbackPort.free())

        // MARK: Apache
        func host(_ port: UInt16, _ lines: String) -> String {
            """
            Listen 127.0.0.1:\(port)
            <VirtualHost 127.0.0.1:\(port)>
            SSLEngine on
            \(lines)
            </VirtualHost>

            """
        }
        let modules = [
            "mpm_event", "authz_core", "ssl", "socache_shmcb", "http2", "proxy", "proxy_http",
            "alias",
        ]
        var configuration = modules.map {
            "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so\n"
        }.joined()
        configuration += """
            ServerRoot \(path)
            ServerName 127.0.0.1
            PidFile \(path)/apache.pid
            ErrorLog \(path)/error.log
            StartServers 1
            ThreadsPerChild 32
            MaxRequestWorkers 32
            KeepAlive Off
            Protocols h2 http/1.1
            SSLCertificateFile \(certificate)
            SSLCertificateKeyFile \(key)
            SSLSessionCache none

            """
        if geteuid() == 0 { configuration += "User www-data\nGroup www-data\n" }
        let onward = "ProxyPass / http://127.0.0.1:\(sandbox)/"
        configuration += host(try #require(ports[.serves]), onward)
        for status in Manner.redirections {
            configuration += host(
                try #require(ports[.redirects(status)]),
                "Redirect \(status) / https://127.0.0.1:\(elsewhere)/")
        }
        // Whoever follows finds the same sandbox there, and is written down.
        configuration += host(
            elsewhere, onward + "\nCustomLog \(path)/followed.log \"%m %U\"")
        try directory.write(configuration, "apache.conf")
        try directory.write("", "followed.log")
        programs.append(
            try Program(
                "/usr/sbin/apache2", ["-D", "FOREGROUND", "-f", path + "/apache.conf"],
                environment: ["PATH": "/usr/bin:/bin"]))

        // MARK: nghttpd, and stunnel for what is not HTTP/2 before it
        try programs.append(
            Program(
                "/usr/sbin/nghttpd",
                ["--address=127.0.0.1", "\(#require(ports[.insistsOnHTTP2]))", key, certificate],
                environment: [:]))
        try programs.append(
            Program(
                "/usr/sbin/nghttpd", ["--address=127.0.0.1", "--no-tls", "\(plain)"],
                environment: [:]))
        try directory.write(
            """
            foreground = yes
            pid =
            [http2]
            accept = 127.0.0.1:\(#require(ports[.answersInHTTP2]))
            connect = 127.0.0.1:\(plain)
            cert = \(certificate)
            key = \(key)

            """, "stunnel.conf")
        programs.append(
            try Program(
                "/usr/bin/stunnel4", [path + "/stunnel.conf"], environment: [:]))
        for port in Array(ports.values) + [elsewhere, plain] {
            try eventually(within: 30, "the fronts listen: \(programs.map(\.output))") {
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(descriptor) }
                return LoopbackPort.connect(descriptor, to: port)
            }
        }
    }

    /// Apache ends its own children, which a kill would leave behind.
    deinit {
        for program in programs { _ = try? program.end(by: SIGTERM) }
    }

    /// The requests of whoever followed a redirect, one line each.
    func followed() throws -> String {
        try String(contentsOfFile: directory.path + "/followed.log", encoding: .utf8)
    }
}
