internal import CCurl

/// What libcurl's error codes say of whether a request may have reached the server.
enum TransferFailure {
    /// When an error can come about.
    enum Phase {
        /// Only while resolving, connecting, passing a proxy or agreeing on TLS.
        case beforeRequest
        /// Then, or while the request is sent and its answer awaited.
        case either
        /// Only once a request was begun, or with protocols that are never spoken here.
        case afterRequest
    }

    /// Whether the server may have seen the request.
    ///
    /// `requestBegan` is what libcurl told before the request's first byte. It counts as sent from
    /// then on whatever the code says, as it does with a code that cannot be so early, and with one
    /// that this list does not know: to take a spent token for a fresh one is the worse mistake.
    static func mayHaveBeenSent(_ code: CURLcode, requestBegan: Bool) -> Bool {
        switch phase(of: code) {
        case .beforeRequest, .either: requestBegan
        case .afterRequest, nil: true
        }
    }

    /// Every error of libcurl 8.14 (`curl/curl.h`), by name; nil for one that is newer.
    static func phase(of code: CURLcode) -> Phase? {
        switch code {
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_FAILED_INIT, CURLE_URL_MALFORMAT,
            CURLE_NOT_BUILT_IN, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST,
            CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR, ccurl_function_not_found,
            CURLE_INTERFACE_FAILED, CURLE_UNKNOWN_OPTION, CURLE_SETOPT_OPTION_SYNTAX,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION, CURLE_USE_SSL_FAILED,
            CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_NO_CONNECTION_AVAILABLE,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_QUIC_CONNECT_ERROR, CURLE_PROXY, CURLE_SSL_CLIENTCERT, ccurl_ech_required:
            .beforeRequest
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_OUT_OF_MEMORY,
            CURLE_OPERATION_TIMEDOUT, CURLE_ABORTED_BY_CALLBACK, CURLE_BAD_FUNCTION_ARGUMENT,
            CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_LOGIN_DENIED,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_AGAIN, CURLE_RECURSIVE_API_CALL, CURLE_AUTH_ERROR,
            CURLE_HTTP3, CURLE_UNRECOVERABLE_POLL, ccurl_too_large:
            .either
        case CURLE_OK, CURLE_REMOTE_ACCESS_DENIED, CURLE_FTP_ACCEPT_FAILED,
            CURLE_FTP_WEIRD_PASS_REPLY, CURLE_FTP_ACCEPT_TIMEOUT, CURLE_FTP_WEIRD_PASV_REPLY,
            CURLE_FTP_WEIRD_227_FORMAT, CURLE_FTP_CANT_GET_HOST, CURLE_FTP_COULDNT_SET_TYPE,
            CURLE_PARTIAL_FILE, CURLE_FTP_COULDNT_RETR_FILE, CURLE_OBSOLETE20,
            CURLE_QUOTE_ERROR, CURLE_HTTP_RETURNED_ERROR, CURLE_WRITE_ERROR, CURLE_OBSOLETE24,
            CURLE_UPLOAD_FAILED, CURLE_READ_ERROR, CURLE_OBSOLETE29, CURLE_FTP_PORT_FAILED,
            CURLE_FTP_COULDNT_USE_REST, CURLE_OBSOLETE32, CURLE_RANGE_ERROR,
            ccurl_http_post_error, CURLE_BAD_DOWNLOAD_RESUME, CURLE_FILE_COULDNT_READ_FILE,
            CURLE_LDAP_CANNOT_BIND, CURLE_LDAP_SEARCH_FAILED, CURLE_OBSOLETE40,
            CURLE_OBSOLETE44, CURLE_OBSOLETE46, CURLE_TOO_MANY_REDIRECTS, CURLE_OBSOLETE50,
            CURLE_OBSOLETE51, CURLE_OBSOLETE57, CURLE_BAD_CONTENT_ENCODING, CURLE_OBSOLETE62,
            CURLE_FILESIZE_EXCEEDED, CURLE_SEND_FAIL_REWIND, CURLE_TFTP_NOTFOUND,
            CURLE_TFTP_PERM, CURLE_REMOTE_DISK_FULL, CURLE_TFTP_ILLEGAL, CURLE_TFTP_UNKNOWNID,
            CURLE_REMOTE_FILE_EXISTS, CURLE_TFTP_NOSUCHUSER, CURLE_OBSOLETE75,
            CURLE_OBSOLETE76, CURLE_REMOTE_FILE_NOT_FOUND, CURLE_SSH, CURLE_FTP_PRET_FAILED,
            CURLE_RTSP_CSEQ_ERROR, CURLE_RTSP_SESSION_ERROR, CURLE_FTP_BAD_FILE_LIST,
            CURLE_CHUNK_FAILED, CURLE_HTTP2_STREAM:
            .afterRequest
        default:
            nil
        }
    }
}
