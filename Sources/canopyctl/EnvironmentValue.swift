internal import AgentCore
internal import Glibc

/// What a variable of a program that we start is set to.
enum EnvironmentValue {
    case text(String)
    case secret(Secret)

    /// `NAME=value`, for the caller to wipe and free.
    func entry(named name: String) -> UnsafeMutablePointer<CChar>? {
        switch self {
        case .text(let text):
            return strdup("\(name)=\(text)")
        case .secret(let secret):
            let prefix = Array("\(name)=".utf8)
            let size = prefix.count + secret.count + 1
            guard let memory = malloc(size) else { return nil }
            let bytes = UnsafeMutableRawBufferPointer(start: memory, count: size)
            bytes.copyBytes(from: prefix)
            secret.withBytes {
                UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.count...]).copyMemory(from: $0)
            }
            bytes[size - 1] = 0
            return memory.assumingMemoryBound(to: CChar.self)
        }
    }
}
