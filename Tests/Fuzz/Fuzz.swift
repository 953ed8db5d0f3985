import Glibc

/// The targets of `scripts/fuzz`: each looks at one kind of bytes from outside, and checks more than
/// that nothing traps.
///
/// They are compiled together with AgentCore's sources into one libFuzzer program.
enum FuzzTarget: String, CaseIterable {
    case request, router, response, json, answer, message, stored, state, settings, texts,
        process

    /// `bytes` live as long as the call.
    func check(_ bytes: UnsafeRawBufferPointer) {
        switch self {
        case .request: RequestFuzz.check(bytes)
        case .router: RouterFuzz.check(bytes)
        case .response: ResponseFuzz.check(bytes)
        case .json: JSONFuzz.check(bytes)
        case .answer: AnswerFuzz.check(bytes)
        case .message: MessageFuzz.check(bytes)
        case .stored: StoredFuzz.check(bytes)
        case .state: StateFuzz.check(bytes)
        case .settings: SettingsFuzz.check(bytes)
        case .texts: TextsFuzz.check(bytes)
        case .process: ProcessFuzz.check(bytes)
        }
    }

    /// The one that this process is for: `FUZZ_TARGET`.
    static let chosen: FuzzTarget = {
        guard let name = getenv("FUZZ_TARGET").map({ String(cString: $0) }),
            let target = FuzzTarget(rawValue: name)
        else {
            let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
            fatalError("FUZZ_TARGET is one of \(names)")
        }
        return target
    }()
}

/// What libFuzzer calls for each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    FuzzTarget.chosen.check(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}

/// Ends the process where `condition` does not hold: libFuzzer keeps the input.
func law(
    _ condition: @autoclosure () -> Bool, _ words: @autoclosure () -> String, line: Int = #line
) {
    guard condition() else { fatalError("a law is broken: \(words()), line \(line)") }
}

extension UnsafeRawBufferPointer {
    /// The first so many bytes.
    func first(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[..<count])
    }

    /// Lengths of prefixes: all of a short buffer's, some of a long one's, never the whole.
    var prefixLengths: StrideTo<Int> {
        stride(from: 0, to: count, by: Swift.max(1, count / 256))
    }

    var text: String { String(decoding: self, as: UTF8.self) }
}
