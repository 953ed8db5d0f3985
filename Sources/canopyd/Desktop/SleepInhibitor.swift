internal import AgentCore
internal import Glibc
internal import LinuxSystem

/// Keeps the machine awake while a refresh token may be spent and its successor not stored, and
/// says when the machine is about to sleep.
///
/// logind delays sleep and shutdown for as long as a descriptor of it is open, 5 s by default: it
/// narrows the risk and does not remove it. Where there is no logind, nothing is delayed.
final class SleepInhibitor {
    /// The machine woke up.
    var onResume: () -> Void = {}

    /// Whether sleep or shutdown is under way: nothing is to be started.
    private(set) var isPreparing = false

    private static let service = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let interface = "org.freedesktop.login1.Manager"

    private let bus: Bus?
    private var descriptor: Int32?
    private var holders = 0

    init(on loop: EventLoop) {
        bus = Bus(.system, on: loop)
        for member in ["PrepareForSleep", "PrepareForShutdown"] {
            bus?.subscribe(
                "type='signal',sender='\(SleepInhibitor.service)',"
                    + "interface='\(SleepInhibitor.interface)',member='\(member)'"
            ) { [weak self] message in
                if let begins = message.readBoolean() { self?.prepares(begins) }
            }
        }
        for property in ["PreparingForSleep", "PreparingForShutdown"] {
            bus?.call(
                SleepInhibitor.service, SleepInhibitor.path, "org.freedesktop.DBus.Properties",
                "Get", [SleepInhibitor.interface, property]
            ) { [weak self] answer in
                if answer?.readBooleanVariant() == true { self?.prepares(true) }
            }
        }
    }

    /// Calls `ready` once the machine is held awake, or once it is clear that it cannot be.
    ///
    /// Each call is followed by one ``release()``.
    func hold(_ ready: @escaping () -> Void) {
        holders += 1
        guard let bus, descriptor == nil else { return ready() }
        bus.call(
            SleepInhibitor.service, SleepInhibitor.path, SleepInhibitor.interface, "Inhibit",
            ["sleep:shutdown", "canopyd", "A session token is being renewed", "delay"]
        ) { [weak self] answer in
            if let self, let passed = answer?.readDescriptor() {
                let copy = fcntl(passed, F_DUPFD_CLOEXEC, 16)
                if holders > 0, descriptor == nil {
                    descriptor = copy
                } else {
                    close(copy)
                }
            }
            ready()
        }
    }

    func release() {
        holders -= 1
        guard holders == 0, let held = descriptor else { return }
        descriptor = nil
        close(held)
    }

    private func prepares(_ begins: Bool) {
        isPreparing = begins
        if !begins { onResume() }
    }

    deinit {
        if let descriptor { close(descriptor) }
    }
}
