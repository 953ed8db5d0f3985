/// The head of an answer, which canopyctl reads.
enum ResponseFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        let whole = parse(bytes)
        if case .success(.some(let head)) = whole {
            law((100...599).contains(head.status), "a status is one")
            law(head.byteCount <= bytes.count, "a head is no longer than what came")
            law(head.byteCount <= Limits.responseHeadBytes, "a head has its limit")
            law((head.contentLength ?? 0) >= 0, "a length is not negative")
            law(parse(bytes.first(head.byteCount)) == whole, "what follows does not change a head")
        }
        for length in bytes.prefixLengths {
            switch parse(bytes.first(length)) {
            case .success(nil): continue
            case .success(.some(let head)):
                return law(whole == .success(head), "a head that was read stays what it is")
            case .failure:
                guard case .failure = whole else { return law(false, "more bytes mend no fault") }
                return
            }
        }
    }

    private static func parse(
        _ bytes: UnsafeRawBufferPointer
    ) -> Result<ResponseHead?, ResponseHead.Malformed> {
        do throws(ResponseHead.Malformed) {
            return .success(try ResponseHead.parse(bytes))
        } catch {
            return .failure(error)
        }
    }
}
