/// The router: the first byte is for the method, the second for a field, the rest is the target.
enum RouterFuzz {
    private static let methods = [
        "GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE",
    ]
    private static let fields = [
        "", "Accept: text/plain\r\n", "Accept: text/event-stream\r\n", "Host: canopyd\r\n",
        "Accept: application/openmetrics-text\r\n", "Origin: null\r\n",
        "Content-Length: 65536\r\n", "Accept: image/png\r\n",
    ]

    static func check(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 2 else { return }
        let method = methods[Int(bytes[0]) % methods.count]
        var request = Array("\(method) ".utf8)
        request += bytes[2...]
        request += Array(" HTTP/1.1\r\n\(fields[Int(bytes[1]) % fields.count])\r\n".utf8)
        request.withUnsafeBytes { request in
            guard case .head(let head, let length) = RequestHead.parse(request),
                length == request.count
            else { return }
            let outcome = route(head, request)
            law(route(head, request) == outcome, "routing twice gives the same")
            switch outcome {
            case .success(let route): check(route, head)
            case .failure(let misrouted): check(misrouted)
            }
        }
    }

    private static func route(
        _ head: RequestHead, _ bytes: UnsafeRawBufferPointer
    ) -> Result<Route, Router.Misrouted> {
        do throws(Router.Misrouted) {
            return .success(try Router.route(head, bytes))
        } catch {
            return .failure(error)
        }
    }

    private static func check(_ route: Route, _ head: RequestHead) {
        law(!head.fromBrowser, "a web page reaches no route")
        let longest = TimeSpan.seconds(Int64(Limits.requestTimeoutMaximumSeconds))
        switch route {
        case .token(let name, let validity, let timeout, _):
            check(name)
            law(timeout >= .zero && timeout <= longest, "a timeout has its limit")
            law((validity ?? .zero) >= .zero, "a validity is not negative")
            law(head.method == .get || head.method == .head, "reading is GET or HEAD")
        case .refresh(let name, let generation, let timeout):
            check(name)
            law(timeout >= .zero && timeout <= longest, "a timeout has its limit")
            law((generation ?? 0) >= 0, "a generation is not negative")
            law(head.method == .post, "a rotation is asked for with POST")
        case .profile(let name), .identity(let name), .sessions(let name):
            check(name)
            law(head.method == .get || head.method == .head, "reading is GET or HEAD")
        case .logIn(let name), .multiFactor(let name), .logOut(let name, _):
            check(name)
            law(head.method == .post, "what changes something is POST")
        case .revokeSession(let name, let id):
            check(name)
            law(!id.isEmpty && !id.utf8.contains(0), "a session has an id")
            law(head.method == .delete, "a session is ended with DELETE")
        case .events(let name):
            if let name { check(name) }
        case .profiles, .status, .metrics:
            law(head.method == .get || head.method == .head, "reading is GET or HEAD")
        }
    }

    private static func check(_ name: ProfileName) {
        law((try? ProfileName(name.text)) == name, "a profile name is one")
    }

    private static func check(_ misrouted: Router.Misrouted) {
        law((400..<500).contains(misrouted.problem.code.status), "the mistake is the client's")
        law(
            (misrouted.allow != nil) == (misrouted.problem.code == .methodNotAllowed),
            "405 says what is allowed")
        guard case .bytes(let body) = Reply(misrouted.problem).body else {
            return law(false, "a problem has a body")
        }
        body.withUnsafeBytes {
            law((try? JSONReader.parse($0)) != nil, "a problem is JSON, whatever was asked")
        }
    }
}
