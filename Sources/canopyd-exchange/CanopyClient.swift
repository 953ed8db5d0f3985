internal import AgentCore
internal import CCurl
internal import Glibc
internal import LinuxSystem

/// Requests to Canopy through libcurl: all of it that canopyd uses.
///
/// One new connection for each request; no cookies, no redirects, no automatic retry, the system's
/// CAs, and every wait bounded.
final class CanopyClient {
    /// Resolving, connecting and TLS together.
    ///
    /// ROTATION, step 4.
    private static let connectPatience = TimeSpan.seconds(10)

    /// From the last byte sent to the whole answer.
    ///
    /// ROTATION, step 4.
    private static let answerPatience = TimeSpan.seconds(30)

    /// A dead path is told from a slow server: asked after 2 s of silence, then each second, and
    /// given up after three misses; unacknowledged data after 5 s.
    ///
    /// ROTATION, step 4.
    private static let keepAliveIdle: Int32 = 2
    private static let keepAliveInterval: Int32 = 1
    private static let keepAliveMisses: Int32 = 3
    private static let userTimeoutMilliseconds: Int32 = 5000

    private let caFile: String?
    private let proxy: String?
    private let memory: SecretMemory

    init(caFile: String?, proxy: String?, memory: SecretMemory) {
        self.caFile = caFile
        self.proxy = proxy
        self.memory = memory
        // Thread-safe since 7.84, and this process has no second thread yet anyway.
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    }

    /// Sends one request and reads its answer.
    func send(_ request: CanopyRequest) -> Transmission {
        // It has to outlive the handle.
        let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        words.update(repeating: 0, count: Int(CURL_ERROR_SIZE))
        defer { words.deallocate() }
        guard let handle = curl_easy_init() else { return .notSent("libcurl cannot start") }
        defer { curl_easy_cleanup(handle) }
        _ = ccurl_set_pointer(handle, CURLOPT_ERRORBUFFER, words)
        let transfer = Transfer(of: request, memory: memory)
        transfer.handle = handle
        var headers: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(headers) }
        for line in ["Accept: application/json", "Content-Type: application/json", "Expect:"] {
            headers = curl_slist_append(headers, line)
        }
        if let token = request.accessToken {
            // libcurl's copy of the line is wiped with the rest of the heap (see ARCHITECTURE).
            let line = CanopyClient.bearer(token, memory)
            headers = line.withBytes {
                curl_slist_append(
                    headers, $0.baseAddress?.assumingMemoryBound(to: CChar.self))
            }
        }
        let code = withExtendedLifetime(transfer) {
            configure(handle, request, headers, transfer)
            return curl_easy_perform(handle)
        }
        var cause = String(cString: words)
        if code == CURLE_PEER_FAILED_VERIFICATION,
            let issuer = CertificateIssuer.ask(request.url, proxy: proxy)
        {
            cause += "; the certificate's issuer is \(issuer)"
        }
        return outcome(code, handle, transfer, words: cause)
    }

    private func configure(
        _ handle: UnsafeMutableRawPointer, _ request: CanopyRequest,
        _ headers: UnsafeMutablePointer<curl_slist>?, _ transfer: Transfer
    ) {
        let state = Unmanaged.passUnretained(transfer).toOpaque()
        _ = ccurl_set_string(handle, CURLOPT_URL, request.url)
        _ = ccurl_set_string(
            handle, CURLOPT_PROTOCOLS_STR, request.url.hasPrefix("https:") ? "https" : "http")
        _ = ccurl_set_pointer(handle, CURLOPT_HTTPHEADER, headers)
        _ = ccurl_set_string(handle, CURLOPT_USERAGENT, "canopyd/\(Version.text) (Linux)")
        if let body = request.body {
            body.withBytes { bytes in
                _ = ccurl_set_long(handle, CURLOPT_POSTFIELDSIZE, bytes.count)
                // Not copied: the request lives until the transfer is over.
                _ = ccurl_set_pointer(
                    handle, CURLOPT_POSTFIELDS,
                    UnsafeMutableRawPointer(mutating: bytes.baseAddress))
            }
        }
        switch request.method {
        case .get: _ = ccurl_set_long(handle, CURLOPT_HTTPGET, 1)
        case .post: _ = ccurl_set_long(handle, CURLOPT_POST, 1)
        case .delete: _ = ccurl_set_string(handle, CURLOPT_CUSTOMREQUEST, "DELETE")
        }
        _ = ccurl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        _ = ccurl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
        _ = ccurl_set_long(handle, CURLOPT_FRESH_CONNECT, 1)
        _ = ccurl_set_long(handle, CURLOPT_FORBID_REUSE, 1)
        _ = ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        // Else a resolver that is not answered is waited for past every patience, until its own is over,
        // which may take minutes. libcurl before 7.87 does not know the option, and waits.
        _ = ccurl_set_long(handle, ccurl_quick_exit, 1)
        _ = ccurl_set_long(
            handle, CURLOPT_CONNECTTIMEOUT_MS,
            Int(CanopyClient.connectPatience.milliseconds))
        // An empty text also switches off what the environment says: it says it to some shells.
        // Plain HTTP is for this machine alone: a proxy would read it, and mean another machine.
        let isPlain = request.url.hasPrefix("http:")
        _ = ccurl_set_string(handle, CURLOPT_PROXY, isPlain ? "" : proxy ?? "")
        // The bundle file takes 50 ms to parse; the hashed directory is read as needed.
        _ = ccurl_set_string(handle, CURLOPT_CAPATH, "/etc/ssl/certs")
        _ = ccurl_set_string(handle, CURLOPT_CAINFO, caFile)
        _ = ccurl_set_before_request(handle, CanopyClient.onRequest, state)
        _ = ccurl_set_write(handle, CanopyClient.onBody, state)
        _ = ccurl_set_progress(handle, CanopyClient.onProgress, state)
        _ = ccurl_set_socket(handle, CanopyClient.onSocket, nil)
    }

    private static func bearer(_ token: Secret, _ memory: SecretMemory) -> Secret {
        var line = SecretBuffer(capacity: token.count + 32, in: memory)
        line.append("Authorization: Bearer ")
        line.append(token)
        line.append(0)
        return line.secret()
    }

    // MARK: What the transfer brought

    private final class Transfer {
        let memory: SecretMemory
        var body: SecretBuffer
        let hasBody: Bool
        let secrets: [Secret]
        /// The transfer's own, while it goes on.
        var handle: UnsafeMutableRawPointer?
        /// Whether the connection was ready, and the request's first byte came next.
        var began = false
        /// When the last byte of the request was sent.
        var sent: BootTime?
        var isTooLarge = false
        var isTooLate = false

        /// Bytes of the body when it was last looked at for its end.
        var judged = 0

        init(of request: CanopyRequest, memory: SecretMemory) {
            hasBody = request.body != nil
            secrets = request.secrets
            self.memory = memory
            body = SecretBuffer(capacity: 4096, in: memory)
        }

        /// What has come by now.
        func answer(_ handle: UnsafeMutableRawPointer) -> CanopyAnswer {
            CanopyAnswer(
                status: Int(ccurl_get_long(handle, CURLINFO_RESPONSE_CODE)),
                retryAfter: CanopyClient.header("Retry-After", handle),
                date: CanopyClient.header("Date", handle), body: body.secret(), secrets: secrets,
                isCutOff: isTooLarge)
        }

        /// Whether a success has come to its last brace, asked once for each length of the body.
        func isWholeSuccess() -> Bool {
            guard let handle, began, body.count > judged else { return false }
            judged = body.count
            return answer(handle).isWholeSuccess
        }
    }

    private func outcome(
        _ code: CURLcode, _ handle: UnsafeMutableRawPointer, _ transfer: Transfer, words: String
    ) -> Transmission {
        let answer = transfer.answer(handle)
        // A successor that has come whole is not thrown away for what the connection lacked then: the
        // last chunk, the rest of a length that was counted wrong, its end.
        if code == CURLE_OK || transfer.began && answer.isWholeSuccess { return .answered(answer) }
        if transfer.isTooLarge {
            return .lost("the answer is larger than \(Limits.answerBodyBytes) bytes")
        }
        if transfer.isTooLate {
            let seconds = CanopyClient.answerPatience.wholeSeconds
            return .lost("no whole answer within \(seconds) s after the request was sent")
        }
        let isRepeating = transfer.secrets.contains { $0.isRepeated(in: words) }
        let cause = CanopyClient.printable(
            words.isEmpty || isRepeating ? String(cString: curl_easy_strerror(code)) : words)
        guard TransferFailure.mayHaveBeenSent(code, requestBegan: transfer.began) else {
            let refusal = ccurl_get_long(handle, CURLINFO_HTTP_CONNECTCODE)
            guard refusal >= 300 else { return .notSent(cause) }
            return .notSent("the proxy refused the connection with status \(refusal): \(cause)")
        }
        return .lost(cause)
    }

    /// Parts of libcurl's words may come from the network, and people read them in terminals.
    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }

    private static let onRequest: ccurl_before_request_callback = { state, _, _, _, _ in
        if let state {
            Unmanaged<Transfer>.fromOpaque(state).takeUnretainedValue().began = true
        }
        return CURL_PREREQFUNC_OK
    }

    private static let onBody: ccurl_write_callback = { bytes, size, count, state in
        guard let bytes, let state else { return 0 }
        let transfer = Unmanaged<Transfer>.fromOpaque(state).takeUnretainedValue()
        let length = size * count
        let taken = min(length, Limits.answerBodyBytes - transfer.body.count)
        transfer.body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: taken))
        transfer.isTooLarge = taken < length
        // Less than what came ends the transfer.
        return taken
    }

    /// A field of the final answer's head, and of nothing else: what an interim answer, trailers or a
    /// proxy's answer to CONNECT say of the time or of a wait is not the server's word on the request.
    private static func header(_ name: String, _ handle: UnsafeMutableRawPointer) -> String? {
        var field: UnsafeMutablePointer<curl_header>?
        let code = curl_easy_header(handle, name, 0, UInt32(CURLH_HEADER), -1, &field)
        guard code == CURLHE_OK, let field else { return nil }
        return String(cString: field.pointee.value)
    }

    /// Called about once a second, and whenever something moves.
    private static let onProgress: ccurl_progress_callback = { state, _, _, toSend, sent in
        guard let state else { return 0 }
        let transfer = Unmanaged<Transfer>.fromOpaque(state).takeUnretainedValue()
        let now = BootTime.now
        guard let asked = transfer.sent else {
            // libcurl counts the body only: a request without one is sent with its head.
            let isSent = transfer.hasBody ? toSend > 0 && sent >= toSend : true
            if transfer.began, isSent { transfer.sent = now }
            return 0
        }
        // For what the connection lacks then a successor does not wait in this process's memory alone.
        if transfer.isWholeSuccess() { return 1 }
        guard now - asked < answerPatience else {
            transfer.isTooLate = true
            return 1
        }
        return 0
    }

    private static let onSocket: ccurl_socket_callback = { _, socket, _ in
        var on: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, size)
        for (option, value) in [
            (TCP_KEEPIDLE, keepAliveIdle), (TCP_KEEPINTVL, keepAliveInterval),
            (TCP_KEEPCNT, keepAliveMisses), (TCP_USER_TIMEOUT, userTimeoutMilliseconds),
        ] {
            var value = value
            // A failure is ignored: the 30 s still bound the wait.
            setsockopt(socket, Int32(IPPROTO_TCP), Int32(option), &value, size)
        }
        return Int32(CURL_SOCKOPT_OK)
    }
}
