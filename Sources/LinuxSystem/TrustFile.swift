package import AgentCore
internal import CLinux
internal import Glibc

/// The extra trust root that the configuration names, as it is on this machine.
///
/// What TLS makes of the certificates is for those to say who speak it; here it is seen only that there
/// are any. libcurl refuses every connection where it cannot read what it was told to trust.
package enum TrustFile {
    /// What keeps it from being used.
    package struct Fault: Equatable, Sendable {
        /// Where it is named, what is wrong, and what follows, in a sentence.
        package let detail: String

        /// The command that mends it; nil where that is to name another file.
        package let fix: String?
    }

    /// What keeps the file in `CAFile=` from being used; nil for nothing, or where none is named.
    package static func fault(in settings: Settings) -> Fault? {
        guard let path = settings.caFile, let problem = problem(with: path) else { return nil }
        return Fault(
            detail: "[network]: CAFile=\(path): \(problem.what); until it can be used no server is "
                + "reached over TLS",
            fix: problem.fix)
    }

    private static func problem(with path: String) -> (what: String, fix: String?)? {
        do throws(SystemError) {
            let file = try FileDescriptor.open(path, O_RDONLY | O_NONBLOCK)
            var status = stat()
            guard fstat(file.number, &status) == 0 else { throw .last("fstat") }
            guard status.st_mode & S_IFMT == S_IFREG else { return ("this is no file", nil) }
            guard try !holdsCertificate(file, path) else { return nil }
            return (
                "it holds no certificate in the form PEM, which begins with -----BEGIN CERTIFICATE-----",
                "openssl x509 -inform der -in \(path) -out \(path).pem  # if it is one in the form DER"
            )
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: return ("there is no such file", nil)
            case EACCES: return ("it cannot be read", "sudo chmod a+r \(path)")
            default: return ("\(error)", nil)
            }
        }
    }

    /// The first lines of what OpenSSL takes for a certificate.
    private static let beginnings = ["", "X509 ", "TRUSTED "].map {
        Array("-----BEGIN \($0)CERTIFICATE-----".utf8)
    }

    private static func holdsCertificate(
        _ file: borrowing FileDescriptor, _ path: String
    ) throws(SystemError) -> Bool {
        var line: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: Limits.readBytes)
        var seen = 0
        while seen < Limits.trustFileBytes {
            let count = read(file.number, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .last("read", path) }
            if count == 0 { break }
            seen += count
            for byte in chunk[..<count] {
                guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                    // A longer line is none of these.
                    if line.count < Limits.trustLineBytes { line.append(byte) }
                    continue
                }
                if begins(line) { return true }
                line.removeAll(keepingCapacity: true)
            }
        }
        return begins(line)
    }

    /// Whether a certificate begins with the line; OpenSSL takes no notice of spaces at its end.
    private static func begins(_ line: [UInt8]) -> Bool {
        let end = line.lastIndex { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return end.map { beginnings.contains(Array(line[...$0])) } ?? false
    }
}
