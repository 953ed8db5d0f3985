internal import AgentCore
internal import CLibsecret
internal import Glibc
internal import LinuxSystem

/// One connection to whoever keeps the secrets, shared by the profiles of a load.
///
/// Nothing here ever raises a prompt: nobody may be there to answer, and libsecret waits for ever. The
/// one exception has nothing to answer, and a deadline: ``KeyringOwner/asksForEachItem``.
final class SecretServiceConnection {
    let service: UnsafeMutablePointer<SecretService>

    /// The program that owns `org.freedesktop.secrets`, for people; nil where nobody does.
    let owner: String?

    /// Whether a call has failed: a service that was started anew knows nothing of what was agreed
    /// with the one before it.
    private(set) var hasFailed = false

    /// Told the path of a collection that turned out to be locked.
    var onLocked: (String) -> Void = { _ in }

    private init(_ service: UnsafeMutablePointer<SecretService>, owner: String?) {
        self.service = service
        self.owner = owner
        keeper = KeyringOwner(process: owner ?? "nobody")
    }

    deinit { g_object_unref(service) }

    /// Connects to the bus and to the service.
    static func open() -> Reading<SecretServiceConnection> {
        let backEnd = getenv("SECRET_BACKEND").map { String(cString: $0) }
        if let refusal = KeyringOwner.refusal(ofBackEnd: backEnd) { return .failed(refusal) }
        clibsecret_forbid_prompts()
        Environment.process.nameSessionBus()
        return KeyringCall.bounded { cancellable, error in
            // Not libsecret's own one, which it keeps even when its bus is gone.
            guard
                let service = secret_service_open_sync(
                    secret_service_get_type(), nil, SECRET_SERVICE_NONE, cancellable, &error)
            else { return nil }
            // GDBus would end us with the bus, before the failure could be told.
            g_dbus_connection_set_exit_on_close(
                g_dbus_proxy_get_connection(clibsecret_proxy(service)), 0)
            return SecretServiceConnection(service, owner: ownerName(service, cancellable))
        }
    }

    /// Makes sure that the next ``open()`` does not get a connection whose bus is gone.
    static func forgetClosed() { clibsecret_forget_closed() }

    /// What is known of the owner.
    let keeper: KeyringOwner

    static var locked: Failure {
        Failure(.keyringLocked, "the keyring is locked")
    }

    // MARK: Collections

    /// The collection that new items are put into, as the service names it.
    enum Standard {
        case none
        case open(String)
        case locked(String)

        var path: String? {
            switch self {
            case .none: nil
            case .open(let path), .locked(let path): path
            }
        }
    }

    /// Finds the default collection, and unlocks it where that needs nobody.
    func openStandard() -> Reading<Standard> {
        let path: String
        switch call("ReadAlias", clibsecret_variant_string("default")) {
        case .failed(let failure): return .failed(failure)
        case .found(let answer):
            path = KeyringCall.take(clibsecret_single_path(answer.value))
        }
        guard path != "/" else { return .found(.none) }
        switch unlock([path]) {
        case .failed(let failure): return .failed(failure)
        case .found(let closed): return .found(closed.isEmpty ? .open(path) : .locked(path))
        }
    }

    /// Unlocks collections where that needs nobody; returns those that it would need somebody for.
    ///
    /// The `Locked` property proves nothing: KWallet and plaintext keyrings report it while they are
    /// usable. The answer to `Unlock` does: a prompt's path means locked, and the prompt is left
    /// alone.
    func unlock(_ paths: [String]) -> Reading<[String]> {
        var closed: [String] = []
        for path in paths {
            switch call("Unlock", clibsecret_variant_paths(path)) {
            case .failed(let failure):
                return .failed(failure)
            case .found(let answer):
                if KeyringCall.take(clibsecret_prompt_of(answer.value)) != "/" {
                    closed.append(path)
                }
            }
        }
        return .found(closed)
    }

    /// Every collection that the service shows.
    func collections() -> Reading<[String]> {
        switch property("/org/freedesktop/secrets", "Service", "Collections") {
        case .failed(let failure): return .failed(failure)
        case .found(let answer):
            guard let list = clibsecret_paths_of(answer.value) else { return .found([]) }
            defer { g_strfreev(list) }
            var paths: [String] = []
            var entry = list
            while let path = entry.pointee {
                paths.append(String(cString: path))
                entry += 1
            }
            return .found(paths)
        }
    }

    /// Whether the collection is there; an alias may name one that is not.
    func hasCollection(_ path: String) -> Bool {
        switch property(path, "Collection", "Label") {
        case .found: true
        case .failed: false
        }
    }

    /// A failure that says what is locked, which is told as well.
    func lockedFailure(_ path: String) -> Failure {
        onLocked(path)
        return SecretServiceConnection.locked
    }

    // MARK: Calls

    /// Runs a call under its deadline; nil from `body` means that the error says why it failed.
    func bounded<Value>(
        _ body: (KeyringCall.Cancellable?, inout KeyringCall.ErrorSlot) -> Value?
    ) -> Reading<Value> {
        let result = KeyringCall.bounded(body)
        if case .failed(let failure) = result, failure.kind == .keyringUnavailable {
            hasFailed = true
        }
        return result
    }

    /// The same for a call without a result.
    func boundedAction(
        _ body: (KeyringCall.Cancellable?, inout KeyringCall.ErrorSlot) -> Void
    ) -> Failure? {
        let result: Reading<Void> = bounded { cancellable, error in
            body(cancellable, &error)
            return error == nil ? () : nil
        }
        switch result {
        case .found: return nil
        case .failed(let failure): return failure
        }
    }

    /// A reply; unreferenced when it goes.
    final class Answer {
        let value: OpaquePointer

        init(owning value: OpaquePointer) {
            self.value = value
        }

        deinit { g_variant_unref(value) }
    }

    func call(_ method: String, _ parameters: OpaquePointer?) -> Reading<Answer> {
        bounded { cancellable, error in
            g_dbus_proxy_call_sync(
                clibsecret_proxy(service), method, parameters, G_DBUS_CALL_FLAGS_NONE,
                gint(KeyringCall.patience.milliseconds), cancellable, &error
            ).map(Answer.init(owning:))
        }
    }

    private func property(_ path: String, _ interface: String, _ name: String) -> Reading<Answer> {
        bounded { cancellable, error in
            clibsecret_property(
                clibsecret_proxy(service), path, "org.freedesktop.Secret.\(interface)", name,
                gint(KeyringCall.patience.milliseconds), cancellable, &error
            ).map(Answer.init(owning:))
        }
    }

    /// The name of the owner's program; its bus name where that is not to be had, nil where there is none.
    private static func ownerName(
        _ service: UnsafeMutablePointer<SecretService>, _ cancellable: KeyringCall.Cancellable?
    ) -> String? {
        let proxy = clibsecret_proxy(service)
        guard let name = g_dbus_proxy_get_name_owner(proxy) else { return nil }
        defer { g_free(name) }
        let pid = clibsecret_process_of(
            g_dbus_proxy_get_connection(proxy), name, gint(KeyringCall.patience.milliseconds),
            cancellable)
        guard pid > 0 else { return String(cString: name) }
        do throws(SystemError) {
            let file = try FileDescriptor.open("/proc/\(pid)/comm", O_RDONLY)
            let bytes = try file.readAll(limit: Limits.processFileBytes, subject: "comm")
            let comm = String(decoding: bytes.prefix { $0 != 10 }, as: UTF8.self)
            return KeyringOwner.processName(comm, startedWith: firstWords(of: pid))
        } catch {
            return String(cString: name)
        }
    }

    /// The first words of the command that started the process; none where they are not to be had.
    private static func firstWords(of pid: UInt32) -> [String] {
        do throws(SystemError) {
            let file = try FileDescriptor.open("/proc/\(pid)/cmdline", O_RDONLY)
            // The names that are looked for are at its beginning, however long it is.
            let start = try file.readStart(of: Limits.commandLineBytes, subject: "cmdline")
            return start.split(separator: 0).map {
                String(decoding: $0, as: UTF8.self)
            }
        } catch {
            return []
        }
    }
}
