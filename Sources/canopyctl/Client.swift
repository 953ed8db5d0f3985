internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Requests to canopyd over its Unix socket, each on a connection of its own.
struct Client {
    enum Method: String {
        case get = "GET"
        case post = "POST"
        case delete = "DELETE"
    }

    /// How the answer's body is wanted.
    enum Accept: String {
        case json = "application/json"
        case text = "text/plain"
    }

    private let address: SocketAddress

    /// Finds the socket's path; nobody is called yet.
    init() throws(Complaint) {
        let path: String
        do {
            path = try Environment.process.agentSocketPath
        } catch {
            throw Complaint(
                .daemonNotReached, "canopyd's socket is not known", detail: "\(error)",
                cure: error.remedy)
        }
        do {
            address = try SocketAddress(path: path)
        } catch {
            throw Complaint(
                .daemonNotReached, "canopyd's socket cannot be used", detail: "\(error)",
                cure: error.remedy)
        }
    }

    /// Sends a request without a body and returns the whole answer, whatever its status.
    ///
    /// `target` is path and query, already encoded; all of it may take `seconds`.
    func send(
        _ method: Method, _ target: String, accept: Accept = .json, seconds: Int
    ) throws(Complaint) -> Response {
        var request = SecretBuffer(capacity: 512, in: .ordinary)
        Self.head(method, target, accept, bodyBytes: method == .get ? nil : 0, into: &request)
        return try exchange(request, seconds: seconds)
    }

    /// Posts `body`, which may hold secrets.
    func post(
        _ target: String, body: borrowing SecretBuffer, seconds: Int
    ) throws(Complaint) -> Response {
        var request = SecretBuffer(capacity: 512 + body.count, in: .locked)
        Self.head(.post, target, .json, bodyBytes: body.count, into: &request)
        body.withBytes { request.append(contentsOf: $0) }
        return try exchange(request, seconds: seconds)
    }

    /// Asks to be told of the profile's changes; throws the problem that comes instead.
    ///
    /// Connecting and the answer's head may take `seconds`; what follows, for ever.
    func subscribe(_ profile: ProfileName, seconds: Int) throws(Complaint) -> EventReader {
        var request = SecretBuffer(capacity: 512, in: .ordinary)
        Self.head(.get, "/v1/events?profile=\(profile)", .json, bodyBytes: nil, into: &request)
        let connection = try ClientConnection(
            to: address, deadline: .now + .seconds(Int64(seconds)), seconds: seconds)
        try connection.write(request)
        return try EventReader(connection)
    }

    private static func head(
        _ method: Method, _ target: String, _ accept: Accept, bodyBytes: Int?,
        into request: inout SecretBuffer
    ) {
        request.append(method.rawValue)
        request.append(" ")
        request.append(target)
        request.append(" HTTP/1.1\r\nHost: canopyd\r\nAccept: ")
        request.append(accept.rawValue)
        if let bodyBytes {
            request.append("\r\nContent-Type: application/json\r\nContent-Length: ")
            request.append(String(bodyBytes))
        }
        request.append("\r\n\r\n")
    }

    private func exchange(
        _ request: borrowing SecretBuffer, seconds: Int
    ) throws(Complaint) -> Response {
        let connection = try ClientConnection(
            to: address, deadline: .now + .seconds(Int64(seconds)), seconds: seconds)
        try connection.write(request)
        return try connection.answer()
    }
}
