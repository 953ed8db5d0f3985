internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem

/// What canopyd-exchange finds, which has the libraries: the bus, the keyring, the servers.
struct ExchangeCheck {
    private(set) var findings: [Finding] = []

    /// How long it may take: two calls to a keyring that hangs, and 40 s for each server.
    private static func patience(_ servers: Int) -> TimeSpan {
        .seconds(20 + 40 * Int64(servers))
    }

    init(_ settings: Settings, servers: [String]) {
        let executable: String
        do throws(ExchangeExecutable.Missing) {
            executable = try ExchangeExecutable.find()
        } catch {
            findings = [
                Finding(
                    .exchange, .failed, "\(error)",
                    fix: "sudo apt-get install --reinstall canopyd")
            ]
            return
        }
        var job = Job(
            .examine, profiles: [], machine: "", boot: BootID(""), stateDirectory: "",
            runtimeDirectory: nil)
        job.caFile = settings.caFile
        job.proxy = settings.proxy?.text
        job.servers = servers
        do throws(SystemError) {
            let reports = try ExchangeCheck.run(
                executable, job, until: .now + ExchangeCheck.patience(servers.count))
            findings = ExchangeCheck.findings(in: reports)
        } catch {
            let fix = error.code == EMFILE ? ExchangeCheck.raising : "\(executable) --version"
            findings = [Finding(.exchange, .failed, "\(error)", fix: fix)]
        }
    }

    /// The command that lets more files be opened.
    private static let raising = "ulimit -n 1024"

    private static func findings(in reports: [Report]) -> [Finding] {
        for report in reports {
            switch report {
            case .ended(_, .document(let document)):
                return [Finding(.exchange, .ok, "canopyd-exchange runs")] + read(document)
            case .ended(_, .failed(let failure)) where failure.kind == .exchangeFailed:
                return [Finding(.exchange, .failed, failure.detail, fix: raising)]
            case .ended(_, .failed(let failure)):
                return [
                    Finding(.exchange, .ok, "canopyd-exchange runs"),
                    Finding(
                        .messageBus, .failed, failure.detail,
                        fix: "systemctl --user restart dbus"),
                ]
            case .ended, .progress, .keyring, .searched, .memoryUnlocked:
                continue
            }
        }
        return [
            Finding(
                .exchange, .failed, "canopyd-exchange ended without a report",
                fix: "sudo apt-get install --reinstall canopyd")
        ]
    }

    private static func read(_ document: Secret) -> [Finding] {
        document.withBytes { bytes in
            do throws(JSONFault) {
                guard let list = try JSONReader.parse(bytes)["findings"] else { return [] }
                return list.elements.compactMap { Finding($0) }
            } catch {
                return [Finding(.exchange, .failed, "its report: \(error)")]
            }
        }
    }

    // MARK: Running it

    /// Starts it with the job and reads what it reports until it ends.
    private static func run(
        _ executable: String, _ job: Job, until deadline: BootTime
    ) throws(SystemError) -> [Report] {
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw .last("socketpair") }
        let ours = FileDescriptor(owning: pair[0])
        let process: pid_t
        do {
            let theirs = FileDescriptor(owning: pair[1])
            process = try Spawn.start(executable, passing: [theirs.number])
        }
        let message = job.encoded(in: .ordinary)
        let sent = message.withBytes {
            send(ours.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        var received: [UInt8] = []
        if sent == message.count {
            received = read(ours.number, until: deadline)
        }
        kill(process, SIGKILL)
        _ = Execution.wait(for: process)
        return received.withUnsafeBytes { Report.whole(in: $0, memory: .ordinary).reports }
    }

    private static func read(_ descriptor: Int32, until deadline: BootTime) -> [UInt8] {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: Limits.readBytes)
        var progress = Progress(
            "asking the keyring and the server", limit: Int((deadline - .now).wholeSeconds))
        while received.count < Limits.messageBytes {
            let left = max(.zero, deadline - .now)
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let pause = min(left, progress.pause).nanoseconds / 1_000_000 + 1
            let ready = poll(&entry, 1, Int32(clamping: pause))
            if ready < 0, errno == EINTR { continue }
            if ready == 0, left > .zero {
                progress.show()
                continue
            }
            guard ready > 0 else { break }
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            received += chunk[..<count]
        }
        return received
    }
}
