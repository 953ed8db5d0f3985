/// The head of a request: what is read does not depend on how the bytes came.
enum RequestFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        let whole = RequestHead.parse(bytes)
        law(RequestHead.parse(bytes) == whole, "parsing twice gives the same")
        switch whole {
        case .head(let head, let length): check(head, length, bytes)
        case .incomplete:
            law(bytes.count < Limits.requestHeadBytes, "a head is not waited for without end")
        case .fault: break
        }
        checkPrefixes(bytes, whole)
    }

    private static func check(
        _ head: RequestHead, _ length: Int, _ bytes: UnsafeRawBufferPointer
    ) {
        law(length <= bytes.count && length <= Limits.requestHeadBytes, "a head has its limit")
        law((0...Limits.requestBodyBytes).contains(head.contentLength), "a body has its limit")
        law(!head.expectsContinue || head.contentLength > 0, "only a body is held back")
        law(head.path.upperBound <= length, "the path is in the head")
        law((head.query?.upperBound ?? 0) <= length, "the query is in the head")
        for index in [head.path, head.query ?? 0..<0].joined() {
            law((0x21...0x7E).contains(bytes[index]), "a target has no space and no control byte")
        }
        law(
            RequestHead.parse(bytes.first(length)) == .head(head, length: length),
            "what follows a head does not change it")
    }

    /// A prefix never says more than the whole, and the second look at it says what the first did.
    private static func checkPrefixes(
        _ bytes: UnsafeRawBufferPointer, _ whole: RequestHead.Progress
    ) {
        var searched = 0
        for length in bytes.prefixLengths {
            let prefix = bytes.first(length)
            let progress = RequestHead.parse(prefix)
            law(
                RequestHead.parse(prefix, from: searched) == progress,
                "what was searched before need not be searched again")
            switch progress {
            case .incomplete:
                searched = length
            case .head:
                return law(whole == progress, "a head that was read stays what it is")
            case .fault:
                guard case .fault = whole else { return law(false, "more bytes mend no fault") }
                return
            }
        }
        law(
            RequestHead.parse(bytes, from: searched) == whole,
            "what was searched before need not be searched again")
    }
}
