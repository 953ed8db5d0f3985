import AgentCore
import Testing

@Suite("A subscriber's queue is bounded by what there is to tell")
struct EventQueueTests {
    @Test("Of one key the latest is sent, after what was queued before it")
    func latestWins() {
        var queue = EventQueue()
        for (event, key) in [("1", "a"), ("2", "b"), ("3", "c"), ("4", "b"), ("5", "a")] {
            queue.add(Array(event.utf8), key: key)
        }
        #expect(queue.count == 3)
        #expect(drained(&queue) == "1345")
        #expect(queue.current == nil)
    }

    @Test("An event of which a part is sent is sent to its end, whatever comes")
    func partlySent() {
        var queue = EventQueue()
        queue.add(Array("old".utf8), key: "a")
        queue.advance(by: 1)
        queue.add(Array("new".utf8), key: "a")
        #expect(queue.sent == 1)
        queue.advance(by: 2)
        #expect(queue.sent == 0)
        #expect(drained(&queue) == "new")
    }

    @Test("A million changes of one profile are one event in the queue")
    func bounded() {
        var queue = EventQueue()
        for _ in 0..<1_000_000 { queue.add([0], key: "state default") }
        #expect(queue.count == 1)
    }

    private func drained(_ queue: inout EventQueue) -> String {
        var bytes: [UInt8] = []
        while let current = queue.current {
            bytes += current[queue.sent...]
            queue.advance(by: current.count - queue.sent)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
