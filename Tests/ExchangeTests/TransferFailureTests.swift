import CCurl
import Testing

@testable import canopyd_exchange

@Suite("What libcurl's errors say of whether the token was presented")
struct TransferFailureTests {
    private static let known = 1..<CURL_LAST.rawValue

    @Test("B05: every error code of libcurl is mapped by name", arguments: known)
    func everyCode(_ number: UInt32) {
        let code = CURLcode(number)
        #expect(
            TransferFailure.phase(of: code) != nil,
            "\(number), \(String(cString: curl_easy_strerror(code)))")
    }

    @Test("B05: once the request was begun, every error is ambiguous", arguments: known)
    func begun(_ number: UInt32) {
        #expect(TransferFailure.mayHaveBeenSent(CURLcode(number), requestBegan: true))
    }

    @Test(
        "B05: what can only fail before the request was not presented",
        arguments: [
            CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_PROXY,
            CURLE_INTERFACE_FAILED, CURLE_URL_MALFORMAT,
        ].map(\.rawValue))
    func before(_ number: UInt32) {
        #expect(!TransferFailure.mayHaveBeenSent(CURLcode(number), requestBegan: false))
    }

    @Test(
        "B05: a timeout and a broken connection are told by whether the request was begun",
        arguments: [
            CURLE_OPERATION_TIMEDOUT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING,
            CURLE_OUT_OF_MEMORY, CURLE_ABORTED_BY_CALLBACK,
        ].map(\.rawValue))
    func either(_ number: UInt32) {
        #expect(!TransferFailure.mayHaveBeenSent(CURLcode(number), requestBegan: false))
        #expect(TransferFailure.mayHaveBeenSent(CURLcode(number), requestBegan: true))
    }

    @Test(
        "B05: a code that nobody has heard of is ambiguous, whenever it comes",
        arguments: [200, 1000, UInt32.max])
    func unknown(_ number: UInt32) {
        for began in [false, true] {
            #expect(TransferFailure.mayHaveBeenSent(CURLcode(number), requestBegan: began))
        }
    }

    @Test(
        "B05: an answer that breaks off is ambiguous, even if nobody saw the request begin",
        arguments: [CURLE_PARTIAL_FILE, CURLE_WRITE_ERROR, CURLE_BAD_CONTENT_ENCODING].map(
            \.rawValue))
    func after(_ number: UInt32) {
        #expect(TransferFailure.mayHaveBeenSent(CURLcode(number), requestBegan: false))
    }
}
