internal import AgentCore
internal import Glibc
internal import LinuxSystem

/// Shows on the desktop what ``SignInNotice`` decides, where there is a desktop.
///
/// The service (org.freedesktop.Notifications) is looked for only while a sign-in is over, is never
/// started by our asking, and is not missed where there is none: without a service nothing is asked,
/// waited for, or written.
final class NotificationService {
    /// ``wakeUp`` is another one now.
    var onWakeUpChange: () -> Void = {}

    private static let service = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"

    /// How long the desktop may take to answer, D-Bus's own default: one that has just come up is slow,
    /// and nobody waits meanwhile.
    private static let patience = TimeSpan.seconds(25)

    /// Names of the freedesktop.org specifications: an icon, and that the matter is no emergency.
    private static let icon = "dialog-password"
    private static let normalUrgency: UInt8 = 1

    /// Until the user closes it: whoever comes back from lunch is to find it.
    private static let neverExpires: Int32 = 0

    private var notice: SignInNotice
    private let boot: BootID
    private let recordPath: String?
    private var recorded: [UInt8]?

    /// Whether a profile has, since the last look at all of them.
    private var hasChanged = false
    private var bus: Bus?
    private var ownerWatch: BusSubscription?
    private var closingWatch: BusSubscription?

    /// `recordPath` is of the file for the next canopyd; nil where there is no place for one.
    init(recordPath: String?, boot: BootID) {
        self.recordPath = recordPath
        self.boot = boot
        recorded = recordPath.flatMap(NotificationService.read)
        notice =
            recorded.map { bytes in
                bytes.withUnsafeBytes { SignInNotice(recorded: $0, boot: boot) }
            } ?? SignInNotice()
    }

    /// When there is something to be done unasked; nil for never.
    var wakeUp: BootTime? { notice.wakeUp }

    /// Takes the session bus, or another one in its place; nil if there is none.
    func connected(_ bus: Bus?) {
        ownerWatch = nil
        closingWatch = nil
        self.bus = bus
        notice.serviceIs(nil)
        observe()
    }

    /// A profile may have changed; what follows from it is left to ``settle(at:)``.
    func saw(_ profile: ProfileName, _ standing: SignInNotice.Standing, at now: BootTime) {
        guard notice.saw(profile, standing, at: now) else { return }
        hasChanged = true
        onWakeUpChange()
    }

    /// Does what follows from all that was seen.
    func settle(at now: BootTime) {
        if hasChanged { proceed(at: now) }
    }

    /// Every profile has been read once, or could not be.
    func sawAll(at now: BootTime) {
        guard notice.needsService else { return }
        notice.sawAll()
        proceed(at: now)
    }

    /// Does what is due.
    func wake(at now: BootTime) {
        guard let due = notice.wakeUp, due <= now else { return }
        proceed(at: now)
    }

    private func proceed(at now: BootTime) {
        hasChanged = false
        switch notice.step(at: now) {
        case .nothing: break
        case .show(let text, let shown): show(text, replacing: shown)
        case .withdraw(let shown): withdraw(shown)
        }
        observe()
        record()
        onWakeUpChange()
    }

    // MARK: The service

    /// Listens for services that come and go, and for nothing where that does not matter.
    private func observe() {
        guard notice.needsService, let bus else {
            if ownerWatch != nil { notice.serviceIs(nil) }
            ownerWatch = nil
            closingWatch = nil
            return
        }
        guard ownerWatch == nil else { return }
        ownerWatch = bus.subscription(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                + "member='NameOwnerChanged',arg0='\(NotificationService.service)'"
        ) { [weak self] message in
            guard message.readText() != nil, message.readText() != nil,
                let owner = message.readText()
            else { return }
            self?.serviceIs(owner.isEmpty ? nil : owner)
        }
        closingWatch = bus.subscription(
            "type='signal',sender='\(NotificationService.service)',"
                + "interface='\(NotificationService.service)',member='NotificationClosed'"
        ) { [weak self] message in
            guard let self, let owner = message.sender, let id = message.readNumber() else {
                return
            }
            notice.closed(id: id, owner: owner)
            proceed(at: .now)
        }
        bus.call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetNameOwner",
            [NotificationService.service]
        ) { [weak self] answer in
            self?.serviceIs(answer?.readText())
        }
    }

    private func serviceIs(_ owner: String?) {
        notice.serviceIs(owner)
        proceed(at: .now)
    }

    // MARK: Showing and withdrawing

    private func show(_ text: SignInNoticeText, replacing shown: SignInNotice.Shown?) {
        notice.showing(text)
        // What the body may contain is the service's to say; one that does not is taken at its worst.
        call("GetCapabilities", []) { [weak self] answer in
            let capabilities = answer?.errorName == nil ? answer?.readTexts() : nil
            let body = text.body(asMarkup: capabilities?.contains("body-markup") ?? true)
            self?.notify(text, body, replacing: shown)
        }
    }

    private func notify(
        _ text: SignInNoticeText, _ body: String, replacing shown: SignInNotice.Shown?
    ) {
        let arguments: [BusArgument] = [
            .text("canopyd"), .number(shown?.id ?? 0), .text(NotificationService.icon),
            .text(text.summary), .text(body), .texts([]),
            .byteVariants(["urgency": NotificationService.normalUrgency]),
            .signedNumber(NotificationService.neverExpires),
        ]
        call("Notify", arguments) { [weak self] answer in self?.answered(answer) }
    }

    private func answered(_ answer: BusMessage?) {
        switch answer?.errorName {
        case nil:
            if let id = answer?.readNumber(), let owner = answer?.sender {
                notice.shows(id: id, owner: owner)
            } else {
                // The bus has gone, or what answers is no notification service.
                notice.wasAbsent()
            }
        case "org.freedesktop.DBus.Error.ServiceUnknown",
            "org.freedesktop.DBus.Error.NameHasNoOwner":
            notice.wasAbsent()
        case .some(let error):
            Journal.write(.noticeRefused, (.error, error))
            notice.refused()
        }
        proceed(at: .now)
    }

    private func withdraw(_ shown: SignInNotice.Shown) {
        notice.withdrew()
        // To the very service that showed it; one that has closed it already says so, to nobody.
        bus?.request(
            shown.owner, NotificationService.path, NotificationService.service, "CloseNotification",
            [.number(shown.id)], patience: NotificationService.patience
        ) { _ in }
    }

    private func call(
        _ method: String, _ arguments: [BusArgument], _ handler: @escaping (BusMessage?) -> Void
    ) {
        guard let bus else { return handler(nil) }
        bus.request(
            NotificationService.service, NotificationService.path, NotificationService.service,
            method, arguments, patience: NotificationService.patience, handler)
    }

    // MARK: The record

    private static func read(_ path: String) -> [UInt8]? {
        do throws(SystemError) {
            return try DurableFile(path).read(limit: Limits.noticeRecordBytes)
        } catch {
            return nil  // A notice too many is the worst that comes of it.
        }
    }

    /// Leaves word for the next canopyd; a record that cannot be written is done without.
    private func record() {
        let contents = notice.record(of: boot)
        guard contents != recorded, let recordPath else { return }
        recorded = contents
        guard let contents else {
            unlink(recordPath)
            return
        }
        do throws(SystemError) {
            try Directory.make(Directory.parent(of: recordPath))
            try DurableFile(recordPath).write(contents, durably: false)
        } catch {
            return
        }
    }
}
