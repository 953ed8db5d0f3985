internal import AgentCore
internal import CLinux
internal import LinuxSystem

/// Lines of standard input that are secrets, in locked memory from the first byte.
///
/// What is read beyond a line is kept for the next one, and a line is read only when it is asked
/// for: a code may be written after the password was accepted.
struct SecretLines: ~Copyable {
    private let buffer = SecretMemory.locked.allocate(2 * (Limits.passwordBytes + 1))
    private var start = 0
    private var end = 0

    /// The next line without its newline, or the carriage return and newline of a file from elsewhere,
    /// of 1 to ``Limits/passwordBytes`` bytes of UTF-8.
    mutating func next(_ what: String, option: Option) throws(Complaint) -> Secret {
        while true {
            let unread = UnsafeRawBufferPointer(
                rebasing: UnsafeRawBufferPointer(buffer)[start..<end])
            if let newline = unread.firstIndex(of: UInt8(ascii: "\n")) {
                start += newline + 1
                let line = unread[..<newline]
                return try secret(
                    UnsafeRawBufferPointer(
                        rebasing: line.last == UInt8(ascii: "\r") ? line.dropLast() : line),
                    what, option)
            }
            guard unread.count <= Limits.passwordBytes else {
                throw tooLong(what, option)
            }
            if start > 0 {
                UnsafeMutableRawBufferPointer(rebasing: buffer[..<unread.count])
                    .copyMemory(from: unread)
                (start, end) = (0, unread.count)
            }
            guard try fill() else {
                let rest = UnsafeRawBufferPointer(
                    rebasing: UnsafeRawBufferPointer(buffer)[start..<end])
                start = end
                return try secret(rest, what, option)
            }
        }
    }

    /// Reads on; false at the end of the input.
    private mutating func fill() throws(Complaint) -> Bool {
        while true {
            let free = UnsafeMutableRawBufferPointer(rebasing: buffer[end...])
            let count = read(STDIN_FILENO, free.baseAddress, free.count)
            if count > 0 {
                end += count
                return true
            }
            if count == 0 { return false }
            let failure = SystemError.last("read", "standard input")
            guard failure.code == EINTR else {
                throw Complaint(
                    .failure, "standard input cannot be read", detail: "\(failure)")
            }
        }
    }

    private func secret(
        _ line: UnsafeRawBufferPointer, _ what: String, _ option: Option
    ) throws(Complaint) -> Secret {
        guard line.count <= Limits.passwordBytes else { throw tooLong(what, option) }
        guard !line.isEmpty else {
            throw .usage(
                "--\(option.name): the line of standard input for the \(what) is empty",
                command: Login.name)
        }
        return try Secret(copying: line, in: .locked).checkedAsText(what)
    }

    private func tooLong(_ what: String, _ option: Option) -> Complaint {
        .usage(
            "--\(option.name): the \(what) has more than \(Limits.passwordBytes) bytes",
            command: Login.name)
    }

    deinit {
        SecretMemory.locked.release(buffer)
    }
}

extension Secret {
    /// The secret itself, if JSON can carry it unchanged: as UTF-8.
    func checkedAsText(_ what: String) throws(Complaint) -> Secret {
        let isText = withBytes { bytes in
            bytes.withMemoryRebound(to: UInt8.self) { units in
                (try? UTF8Span(validating: units.span)) != nil
            }
        }
        guard isText else {
            throw .usage(
                "the \(what) is not UTF-8, and could not be sent as it is",
                cure: "write it in UTF-8 (LANG=C.UTF-8)")
        }
        return self
    }
}
