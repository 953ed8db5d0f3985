/// What crosses the socket pair between canopyd and an exchange.
enum MessageFuzz {
    static func check(_ bytes: UnsafeRawBufferPointer) {
        switch FieldReader.length(bytes) {
        case .incomplete: law(bytes.count < 4, "four bytes say how long a message is")
        case .malformed: law(bytes.count >= 4, "four bytes say how long a message is")
        case .length(let length):
            law(
                (5...Limits.messageBytes + 4).contains(length), "a message has its limit")
        }
        if let job = Job(decoding: bytes, in: .ordinary) {
            body(of: job.encoded(in: .ordinary)) { again in
                guard let decoded = Job(decoding: again, in: .ordinary) else {
                    return law(false, "what is written can be read")
                }
                law(decoded == job, "a job is what was written")
            }
        }
        if let report = Report(decoding: bytes, in: .ordinary) {
            let written = report.encoded(in: .ordinary)
            body(of: written) { again in
                guard let decoded = Report(decoding: again, in: .ordinary) else {
                    return law(false, "what is written can be read")
                }
                law(decoded.encoded(in: .ordinary) == written, "a report is what was written")
            }
        }
    }

    /// The message without the length in front, which is what it says.
    private static func body(of message: Secret, _ check: (UnsafeRawBufferPointer) -> Void) {
        message.withBytes { bytes in
            law(FieldReader.length(bytes) == .length(bytes.count), "a message says how long it is")
            for length in 0..<4 {
                law(FieldReader.length(bytes.first(length)) == .incomplete, "less says nothing")
            }
            check(UnsafeRawBufferPointer(rebasing: bytes[4...]))
        }
    }
}
