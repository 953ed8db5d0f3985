import AgentCore
import Testing

@Suite("A secret has no text form")
struct SecretTests {
    private let secret = "correct horse".utf8.withContiguousStorageIfAvailable {
        Secret(copying: UnsafeRawBufferPointer($0), in: .ordinary)
    }

    @Test("Printing, interpolating, dumping and reflecting show a placeholder")
    func noText() throws {
        let secret = try #require(secret)
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), String(describing: secret), dumped] {
            #expect(!text.contains("horse"))
        }
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("The memory is wiped before it is given back")
    func wiped() {
        nonisolated(unsafe) var last: [UInt8] = []
        let memory = SecretMemory(
            allocate: { .allocate(byteCount: $0, alignment: 16) },
            release: { bytes in
                wipe(bytes)
                last = [UInt8](bytes)
                bytes.deallocate()
            })
        do {
            let bytes: [UInt8] = [1, 2, 3]
            let secret = bytes.withUnsafeBytes { Secret(copying: $0, in: memory) }
            #expect(secret.count == 3)
        }
        #expect(!last.isEmpty && last.allSatisfy { $0 == 0 })
    }
}
