import AgentCore
import Testing

@Suite("How many descriptors the service manager keeps")
struct DescriptorAllowanceTests {
    @Test(
        "What it says counts; that a systemd which would say so says nothing means none",
        arguments: [
            ("512", 254, .atMost(512)), ("1", nil, .atMost(1)), ("0", 252, .atMost(0)),
            (nil, 254, .atMost(0)), (nil, 257, .atMost(0)),
            (nil, 253, .unknown), (nil, nil, .unknown),
            ("-1", 252, .unknown), ("many", 257, .atMost(0)),
        ] as [(String?, Int?, DescriptorAllowance)])
    func told(_ told: String?, _ systemd: Int?, _ expected: DescriptorAllowance) {
        #expect(DescriptorAllowance(told: told, systemd: systemd) == expected)
    }

    @Test("As many as are allowed are kept, and not one more")
    func room() {
        #expect(!DescriptorAllowance.atMost(0).permitsOneMore(than: 0))
        #expect(DescriptorAllowance.atMost(2).permitsOneMore(than: 1))
        #expect(!DescriptorAllowance.atMost(2).permitsOneMore(than: 2))
        #expect(DescriptorAllowance.unknown.permitsOneMore(than: 100_000))
    }

    @Test("Of a canopyd that ends, the slots that are empty are taken back, and no full one")
    func takenBack() {
        #expect(DescriptorAllowance.isTakenBack(isKept: true, isFull: false))
        #expect(!DescriptorAllowance.isTakenBack(isKept: true, isFull: true))
        #expect(!DescriptorAllowance.isTakenBack(isKept: false, isFull: false))
        #expect(!DescriptorAllowance.isTakenBack(isKept: false, isFull: true))
    }
}
