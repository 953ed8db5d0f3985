import Foundation
import Testing

/// What one exchange did to files, keyring, server, slot and canopyd, in its order, as strace saw it.
struct ExchangeTrace {
    enum Step: Equatable {
        case lock
        /// The profile's file, whose sign-ins are pending or not.
        case writeState(pending: Bool)
        case syncStateFile, renameState, syncStateDirectory
        /// What was said to the keyring.
        case setSecret, getSecrets, createItem, delete
        case syncKeyringDirectory
        /// What was said to canopyd.
        case presenting, report
        /// What was said to the server: the last part of the path.
        case post(String)
        case fillSlot, completeSlot, emptySlot
        case exit
    }

    let steps: [Step]

    /// The command that runs a program in its own place and writes what it and its children do to
    /// `path`.
    static func command(writing path: String) -> [String] {
        let calls =
            "trace=execve,clone,clone3,openat,fsync,fdatasync,rename,renameat,renameat2,write,"
            + "pwrite64,ftruncate,sendto,sendmsg,exit_group"
        return [
            // `-D`: the program is our child, and strace is not.
            "/usr/bin/strace", "-D", "-A", "-f", "-qq", "-s", "400", "-e", calls, "-e",
            "signal=none", "-o", path,
        ]
    }

    /// The exchanges in a trace, in the order of their starts, of the profile named `default`.
    static func read(_ path: String) throws -> [ExchangeTrace] {
        let calls = try completeCalls(path)
        // Threads come under the process that they belong to.
        var processOf: [Int: Int] = [:]
        for (thread, call) in calls where call.hasPrefix("clone") && call.contains("CLONE_THREAD") {
            guard let made = result(call) else { continue }
            processOf[made] = processOf[thread] ?? thread
        }
        var order: [Int] = []
        var readers: [Int: Reader] = [:]
        for (thread, call) in calls {
            let process = processOf[thread] ?? thread
            if call.hasPrefix("execve("), call.contains("/canopyd-exchange\"") {
                order.append(process)
                readers[process] = Reader()
            }
            readers[process]?.see(call)
        }
        return order.compactMap { readers[$0].map { ExchangeTrace(steps: $0.steps) } }
    }

    /// Thread and call, each where it was over: a call that another thread's came between is in two
    /// lines.
    private static func completeCalls(_ path: String) throws -> [(thread: Int, call: String)] {
        var begun: [Int: String] = [:]
        var calls: [(Int, String)] = []
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard parts.count == 2, let thread = Int(parts[0]) else { continue }
            var call = parts[1].trimmingCharacters(in: .whitespaces)
            if let end = call.range(of: "<unfinished ...>") {
                begun[thread] = String(call[..<end.lowerBound])
                continue
            }
            if call.hasPrefix("<... "), let end = call.range(of: " resumed>") {
                call = (begun.removeValue(forKey: thread) ?? "") + call[end.upperBound...]
            }
            calls.append((thread, call))
        }
        return calls
    }

    private static func result(_ call: String) -> Int? {
        call.range(of: "= ", options: .backwards).flatMap {
            Int(call[$0.upperBound...].prefix { $0.isNumber })
        }
    }

    /// Knows which files are open, and tells a call's meaning by that.
    private struct Reader {
        var steps: [Step] = []
        private var paths: [Int: String] = [:]

        mutating func see(_ call: String) {
            guard let parenthesis = call.firstIndex(of: "(") else { return }
            let arguments = call[call.index(after: parenthesis)...]
            let descriptor = Int(arguments.prefix { $0.isNumber }) ?? -1
            switch call[..<parenthesis] {
            case "openat": opened(call)
            case "write": written(paths[descriptor] ?? "", call)
            case "fsync", "fdatasync": synced(paths[descriptor] ?? "")
            case "rename", "renameat", "renameat2":
                if call.contains("/default.json\""), !call.contains("/marks/") {
                    steps.append(.renameState)
                }
            case "ftruncate": if descriptor == ExchangeTrace.slot { steps.append(.emptySlot) }
            case "pwrite64":
                guard descriptor == ExchangeTrace.slot else { return }
                // The header, which comes last, makes the body count.
                steps.append(call.contains("\"CNPY") ? .completeSlot : .fillSlot)
            case "sendto": sent(descriptor, arguments)
            case "sendmsg": called(call)
            case "exit_group": steps.append(.exit)
            default: break
            }
        }

        private mutating func opened(_ call: String) {
            guard let descriptor = ExchangeTrace.result(call) else { return }
            let path = call.split(separator: "\"").dropFirst().first.map(String.init) ?? ""
            paths[descriptor] = path
            if path.hasSuffix("/default.lock") { steps.append(.lock) }
        }

        private mutating func written(_ path: String, _ call: String) {
            guard path.hasSuffix("/default.json.new"), !path.contains("/marks/") else { return }
            steps.append(.writeState(pending: !call.contains(#"\"pending\":[]"#)))
        }

        private mutating func synced(_ path: String) {
            if path.hasSuffix("/default.json.new") {
                steps.append(.syncStateFile)
            } else if path.hasSuffix("/keyrings") {
                steps.append(.syncKeyringDirectory)
            } else if path.contains("/state/canopyd/"), !path.hasSuffix("/anchor") {
                steps.append(.syncStateDirectory)
            }
        }

        private mutating func sent(_ descriptor: Int, _ arguments: Substring) {
            if descriptor == ExchangeTrace.channel {
                // One byte that says so; else the state of the keyring, that it is slow, or how it
                // ended.
                if arguments.contains(#""\0\0\0\1\1""#) {
                    steps.append(.presenting)
                } else if !arguments.contains(#"\2ok\3"#), !arguments.contains("takes its time") {
                    steps.append(.report)
                }
            } else if let post = arguments.range(of: "\"POST ") {
                let path = arguments[post.upperBound...].prefix { $0 != " " }
                steps.append(.post(path.split(separator: "/").last.map(String.init) ?? ""))
            }
        }

        private mutating func called(_ message: String) {
            let members: [(String, Step)] = [
                ("SetSecret", .setSecret), ("GetSecrets", .getSecrets),
                ("CreateItem", .createItem), ("Delete", .delete),
            ]
            for (member, step) in members where message.contains(#"\0\#(member)\0"#) {
                steps.append(step)
            }
        }
    }

    private static let channel = 3
    private static let slot = 4
}
