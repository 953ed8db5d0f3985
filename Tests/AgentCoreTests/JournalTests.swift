import Foundation
import Testing

@testable import AgentCore

@Suite("The journal's lines")
struct JournalTests {
    @Test("Text and fields say the same, the message first and unvaried")
    func line() throws {
        let line = JournalLine(
            .exchangeFailed, [(.profile, "work"), (.code, "server_error"), (.error, "502")])
        #expect(line.text == "An exchange failed: profile=work, code=server_error, error=502")
        let fields = String(decoding: line.datagram, as: UTF8.self).split(separator: "\n")
        #expect(fields.contains("MESSAGE=\(line.text)"))
        #expect(fields.contains("MESSAGE_ID=\(JournalEvent.exchangeFailed.id)"))
        #expect(fields.contains("PRIORITY=4"))
        #expect(fields.contains("CANOPYD_EVENT=exchange_failed"))
        #expect(fields.contains("CANOPYD_PROFILE=work"))
        #expect(fields.contains("CANOPYD_CODE=server_error"))
    }

    @Test("A value with line breaks makes no field of its own")
    func lineBreaks() {
        let line = JournalLine(.exchangeFailed, [(.error, "a\nPRIORITY=0\r\nMESSAGE=b\u{0}c")])
        let fields = String(decoding: line.datagram, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        #expect(fields.count { $0.hasPrefix("PRIORITY=") } == 1)
        #expect(fields.count { $0.hasPrefix("MESSAGE=") } == 1)
        #expect(!line.text.contains("\n"))
        #expect(!line.text.utf8.contains(0))
    }

    @Test("A long value is cut between characters")
    func long() {
        let line = JournalLine(
            .exchangeFailed, [(.error, String(repeating: "é", count: 5000))])
        #expect(line.text.utf8.count < Limits.logValueBytes + 100)
        #expect(line.text.hasSuffix("é…"))
    }

    @Test("The catalogue explains every event, and no other")
    func catalogue() throws {
        let path = #filePath.replacing(
            "Tests/AgentCoreTests/JournalTests.swift", with: "systemd/canopyd.catalog")
        let catalogue = try String(contentsOfFile: path, encoding: .utf8)
        let entries = catalogue.components(separatedBy: "\n-- ").dropFirst()
        #expect(entries.count == JournalEvent.allCases.count)
        for event in JournalEvent.allCases {
            let entry = try #require(
                entries.first { $0.hasPrefix("\(event.id)\nSubject: \(event.message)\n") },
                "no entry for \(event)")
            let body = entry.components(separatedBy: "\n\n").dropFirst().joined()
            #expect(!body.isEmpty, "\(event)")
            for name in body.matches(of: #/@([A-Z_]+)@/#).map(\.1) {
                #expect(
                    JournalField.allCases.contains { $0.journalName == name }, "\(event): \(name)")
            }
        }
    }

    @Test("Ids are 128 bits, and none is used twice")
    func ids() {
        let ids = JournalEvent.allCases.map { "\($0.id)" }
        #expect(Set(ids).count == ids.count)
        for id in ids { #expect(id.wholeMatch(of: #/[0-9a-f]{32}/#) != nil) }
    }

    @Test("What repeats is written a few times, then counted, then told")
    func budget() {
        var budget = LogBudget()
        let start = BootTime(nanoseconds: 5_000_000_000)
        for _ in 0..<Limits.logLines {
            #expect(budget.decide(.connectionForeign, at: start) == .write(suppressed: 0))
        }
        for _ in 0..<7 {
            #expect(budget.decide(.connectionForeign, at: start + .seconds(1)) == .suppress)
        }
        // Another kind has a budget of its own.
        #expect(budget.decide(.signInRequired, at: start + .seconds(1)) == .write(suppressed: 0))
        let later = start + .seconds(Int64(Limits.logSpanSeconds))
        #expect(budget.decide(.connectionForeign, at: later) == .write(suppressed: 7))
        #expect(budget.decide(.connectionForeign, at: later) == .write(suppressed: 0))
    }
}
