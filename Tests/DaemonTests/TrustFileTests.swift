import Foundation
import Glibc
import Testing

@Suite("The extra trust root that the configuration names", .timeLimit(.minutes(25)))
struct TrustFileTests {
    /// A file at the path of `CAFile=`: what is made there, and what has to be said of it.
    enum Kind: CaseIterable {
        case missing, lostLink, folder, fifo, empty, other, key, certificate, trusted, lastLine

        var words: String? {
            switch self {
            case .missing, .lostLink: "there is no such file; until it can be used"
            case .folder, .fifo: "this is no file"
            case .empty, .other, .key: "openssl x509 -inform der -in"
            case .certificate, .trusted, .lastLine: nil
            }
        }

        /// Made by hand, for nothing of it is read but how it begins.
        func make(at path: String) throws {
            let text: String
            switch self {
            case .missing: return
            case .lostLink:
                try #require(symlink("/nowhere", path) == 0)
                return
            case .folder:
                try #require(mkdir(path, 0o700) == 0)
                return
            case .fifo:
                try #require(mkfifo(path, 0o600) == 0)
                return
            case .empty: text = ""
            case .other: text = "see -----BEGIN CERTIFICATE-----\n-----BEGIN CERTIFICATES-----\n"
            case .key: text = "-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n"
            case .certificate:
                // Behind a page of words, as bundles have them, and across two reads of 16 KiB.
                text =
                    String(repeating: "Company CA\n", count: 1489)
                    + "-----BEGIN CERTIFICATE----- \r\n"
            case .trusted: text = "\n-----BEGIN TRUSTED CERTIFICATE-----\nMIIB\n"
            case .lastLine: text = "-----BEGIN X509 CERTIFICATE-----"
            }
            try text.write(toFile: path, atomically: false, encoding: .utf8)
        }
    }

    @Test(
        "--check-config says what is wrong with it, where, and what to do", arguments: Kind.allCases
    )
    func checked(_ kind: Kind) throws {
        let directory = try TestDirectory()
        let path = directory.path + "/ca.pem"
        try kind.make(at: path)
        try directory.write("[network]\nCAFile=\(path)\n", "conf/canopyd/canopyd.conf")
        let outcome = try CanopydProgram.run(["--check-config"], in: directory)
        guard let words = kind.words else {
            #expect(outcome.exitCode == 0 && outcome.words.isEmpty, "\(outcome.words)")
            return
        }
        #expect(outcome.exitCode == 1)
        #expect(
            outcome.words.hasPrefix(
                "canopyd: \(directory.path)/conf/canopyd/canopyd.conf: [network]: CAFile=\(path): ")
        )
        #expect(outcome.words.contains(words), "\(outcome.words)")
        #expect(outcome.words.contains("no server is reached over TLS; "))
    }

    @Test("One that only somebody else may read is told with the command that opens it")
    func unreadable() throws {
        let directory = try TestDirectory()
        let path = directory.path + "/ca.pem"
        try Kind.lastLine.make(at: path)
        chmod(path, 0)
        try directory.write("[network]\nCAFile=\(path)\n", "conf/canopyd/canopyd.conf")
        // root reads everything, but for this right.
        let wrapper =
            geteuid() == 0
            ? ["/usr/bin/setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"] : []
        let outcome = try CanopydProgram.run(["--check-config"], in: directory, under: wrapper)
        #expect(outcome.exitCode == 1)
        #expect(outcome.words.contains("cannot be read"), "\(outcome.words)")
        #expect(outcome.words.contains("sudo chmod a+r \(path)"))
    }

    @Test("A start warns of it and goes on; a reload leaves in force what was")
    func running() throws {
        let directory = try TestDirectory()
        let path = directory.path + "/ca.pem"
        let bad = "[network]\nCAFile=\(path)\n"
        let daemon = try RunningDaemon(in: directory, configuration: bad + "[log]\nLevel=debug\n")
        #expect(daemon.words.contains("CAFile=\(path): there is no such file"))
        try daemon.connect().expectService()
        try directory.write(bad + "[log]\nLevel=error\n", "conf/canopyd/canopyd.conf")
        kill(daemon.pid, SIGHUP)
        try eventually("the reload is refused") {
            daemon.words.contains("The configuration is bad, and what was in force stays so")
        }
        try Kind.certificate.make(at: path)
        try directory.write(bad + "[log]\nLevel=debug\n", "conf/canopyd/canopyd.conf")
        kill(daemon.pid, SIGHUP)
        try eventually("the reload is done") {
            daemon.words.contains("The configuration was read again")
        }
    }
}
