internal import AgentCore
internal import LinuxSystem

/// What a request is answered with, and when.
struct Answer {
    var status: Int
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var contentType = "application/json; charset=utf-8"
    /// What the head says of the body's length, if that is not so.
    var claimedLength: Int?

    /// Whether the connection is left as it is, though the body is shorter than the head says.
    var staysOpen = false

    /// Whether it stands between an interim answer and trailers, which both tell another time and to wait.
    var hasStrayHeaders = false

    init(_ status: Int) {
        self.status = status
    }

    init(_ status: Int, json: [UInt8]) {
        self.status = status
        body = json
    }

    static func html(_ status: Int, _ text: String) -> Answer {
        var answer = Answer(status)
        answer.contentType = "text/html"
        answer.body = Array("<!doctype html><title>\(text)</title><h1>\(text)</h1>\n".utf8)
        return answer
    }

    /// The bytes on the wire.
    func bytes(at now: WallTime, keepsAlive: Bool) -> [UInt8] {
        let strays =
            "Date: \(HTTPDate.text(now + .seconds(366 * 86_400)))\r\nRetry-After: 900\r\n\r\n"
        // Trailers need chunks, which have no length to be wrong about.
        let hasTrailers = hasStrayHeaders && status != 204 && claimedLength == nil
        var head = hasStrayHeaders ? "HTTP/1.1 103 Early Hints\r\n" + strays : ""
        head += "HTTP/1.1 \(status) \(Answer.reason(status))\r\n"
        head += "Date: \(HTTPDate.text(now))\r\n"
        // RFC 9110, 8.6: no length in a 204.
        if status != 204 {
            head += "Content-Type: \(contentType)\r\n"
            head +=
                hasTrailers
                ? "Transfer-Encoding: chunked\r\n"
                : "Content-Length: \(claimedLength ?? body.count)\r\n"
        }
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        head += keepsAlive ? "\r\n" : "Connection: close\r\n\r\n"
        guard hasTrailers else { return Array(head.utf8) + body }
        if !body.isEmpty { head += String(body.count, radix: 16) + "\r\n" }
        let end = (body.isEmpty ? "" : "\r\n") + "0\r\n" + strays
        return Array(head.utf8) + body + Array(end.utf8)
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 204: "No Content"
        case 302: "Found"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 411: "Length Required"
        case 413: "Content Too Large"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: "Status"
        }
    }
}

/// How a request is dealt with by the loop.
enum Handling {
    case answer(Answer)
    /// The connection ends without a byte.
    case close
    /// The connection is reset.
    case reset
    /// Nothing comes until the client gives up.
    case silence
    /// The answer is ready and goes out later.
    case late(Answer, Lateness)
    /// The request takes effect later, and is answered then.
    case deferred(Lateness)
}

/// What a late answer waits for.
enum Lateness {
    case milliseconds(Int)
    case release
}

enum HTTPDate {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func text(_ time: WallTime) -> String {
        // 1994-11-06T08:49:37Z, taken apart by its fixed columns.
        let stamp = Array(Timestamp.rfc3339(time).utf8)
        func part(_ range: Range<Int>) -> String { String(decoding: stamp[range], as: UTF8.self) }
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        // 1970-01-01 was a Thursday.
        let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let day = days[Int(time.seconds / 86_400 % 7)]
        let month = months[(Int(part(5..<7)) ?? 1) - 1]
        return "\(day), \(part(8..<10)) \(month) \(part(0..<4)) \(part(11..<19)) GMT"
    }
}
