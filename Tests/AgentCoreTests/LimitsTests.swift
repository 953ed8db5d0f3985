import Foundation
import Testing

@Suite("Every limit has a name, a reason, and an enforcer that uses it")
struct LimitsTests {
    private struct Limit {
        let name: String
        let comment: String
    }

    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources")

    /// The programs' own files by their paths; what only tests run has limits of its own.
    private static func files() throws -> [String: String] {
        var files: [String: String] = [:]
        let names = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
        for name in names where name.hasSuffix(".swift") && !name.hasPrefix("Simulation") {
            files[name] = try String(
                contentsOf: sources.appendingPathComponent(name), encoding: .utf8)
        }
        return files
    }

    private static func limits(in text: String) -> [Limit] {
        var limits: [Limit] = []
        var comment: [Substring] = []
        for line in text.split(separator: "\n") {
            let words = line.drop { $0 == " " }
            if words.hasPrefix("///") {
                comment.append(words.dropFirst(3))
                continue
            }
            if let name = line.firstMatch(of: /static let (\w+)/)?.1 {
                limits.append(Limit(name: String(name), comment: comment.joined(separator: " ")))
            }
            comment = []
        }
        return limits
    }

    @Test("The comment names who enforces it, and that file uses it")
    func enforced() throws {
        let files = try Self.files()
        let homes = files.filter { $0.key.hasSuffix("/Limits.swift") }
        let limits = homes.flatMap { Self.limits(in: $0.value) }
        try #require(limits.count > 90, "the limits were not found")
        for limit in limits {
            let enforcement = limit.comment.components(separatedBy: "nforced by")
            #expect(enforcement.count == 2, "\(limit.name) does not say who enforces it")
            #expect(enforcement[0].count > 20, "\(limit.name) has no reason")
            let enforcers = (enforcement.last ?? "").matches(of: /`(\w+)(?:\.swift)?`/).map {
                String($0.1)
            }
            // The kernel and systemd have no file here; what reckons with them has.
            let users = files.filter { name, text in
                !name.hasSuffix("/Limits.swift")
                    && text.firstMatch(of: try! Regex("Limits\\.\(limit.name)\\b")) != nil
            }.map { name, _ in name.split(separator: "/").last?.dropLast(6) ?? "" }
            #expect(!users.isEmpty, "nobody uses \(limit.name)")
            let isEnforced = enforcers.contains { enforcer in users.contains { $0 == enforcer } }
            #expect(
                enforcers.isEmpty || isEnforced,
                "\(limit.name): \(enforcers) do not use it, but \(users)")
        }
    }

    @Test("No file but these has a number that limits a size or a count")
    func named() throws {
        let bare: [Regex<Substring>] = [
            // A shift of a number makes so many KiB or MiB.
            /\b\d+ << [123]0\b/, /limit: \d/, /\.prefix\(\d\d+\)/, /repeating: 0, count: \d{3,}/,
            /\.count (?:<|<=|>|>=) \d\d+/, /\.contains\([a-z.]*count\)/,
        ]
        for (name, text) in try Self.files() where !name.hasSuffix("/Limits.swift") {
            // The sandbox plays a server, and its own rules are those of the contract.
            if name.hasPrefix("canopy-") || name.hasPrefix("SandboxRules") { continue }
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated()
            {
                let code = line.drop { $0 == " " }
                guard !code.hasPrefix("//"), !code.contains("Limits.") else { continue }
                for pattern in bare where code.firstMatch(of: pattern) != nil {
                    Issue.record("\(name):\(number + 1): a limit without a name: \(code)")
                }
            }
        }
    }
}
