import AgentCore
import Foundation
import LinuxSystem
import Testing

@Suite("Secrets share locked pages, and nothing else", .serialized)
struct LockedMemoryTests {
    private struct Held {
        let bytes: UnsafeMutableRawBufferPointer
        let size: Int
        let mark: UInt8
    }

    @Test("What is handed out is zeroed, its own, and large enough", arguments: [1, 2, 3])
    func walk(seed: UInt64) throws {
        var random = SplitMix(seed)
        var held: [Held] = []
        let before = try lockedKilobytes()
        for step in 0..<20_000 {
            if held.count < 300, Bool.random(using: &random) {
                let size =
                    step % 50 == 0
                    ? Int.random(in: 1...10_000, using: &random)
                    : Int.random(in: 1...2100, using: &random)
                let bytes = SecretMemory.locked.allocate(size)
                #expect(bytes.count >= size)
                #expect(bytes.allSatisfy { $0 == 0 }, "not zeroed: \(size) bytes, step \(step)")
                let mark = UInt8.random(in: 1...255, using: &random)
                bytes.initializeMemory(as: UInt8.self, repeating: mark)
                held.append(Held(bytes: bytes, size: size, mark: mark))
            } else if let index = held.indices.randomElement(using: &random) {
                let one = held.remove(at: index)
                #expect(one.bytes.allSatisfy { $0 == one.mark }, "overwritten: step \(step)")
                SecretMemory.locked.release(one.bytes)
            }
        }
        for one in held {
            #expect(one.bytes.allSatisfy { $0 == one.mark }, "overwritten: \(one.size) bytes")
            SecretMemory.locked.release(one.bytes)
        }
        #expect(try lockedKilobytes() == before, "pages were kept")
    }

    @Test("A hundred tokens of 700 bytes take less than a hundred pages by far")
    func sharing() throws {
        let before = try lockedKilobytes()
        let tokens = (0..<100).map { _ in SecretMemory.locked.allocate(700) }
        #expect(try lockedKilobytes() - before <= 100)
        for token in tokens { SecretMemory.locked.release(token) }
        #expect(try lockedKilobytes() == before)
    }

    /// What this process has locked, all of it by ``SecretMemory/locked``.
    private func lockedKilobytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmLck:") })
        return try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    }
}

/// Numbers that a seed decides.
private struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
