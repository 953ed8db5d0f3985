internal import AgentCore
internal import CLibsecret
internal import Glibc
internal import LinuxSystem

/// The Secret Service through libsecret: all of it that canopyd uses.
///
/// Every call is bounded in time, and none ever raises a prompt: nobody may be there to answer, and
/// libsecret waits for ever.
final class SecretServiceStore {
    /// The time that one call to the keyring gets.
    ///
    /// The slowest seen on a loaded machine: 50 ms.
    private static let callPatience = TimeSpan.seconds(5)

    /// How long after its deadline a cancelled call may take to return.
    private static let callGrace = TimeSpan.seconds(2)

    private let profile: ProfileName
    private let machine: String
    private let memory: SecretMemory
    private let connection: Connection

    /// The item that was read last: the one to be rewritten, wherever the default alias points.
    private var item: OpaqueItem?

    /// Whether it was looked for: what was not must not be stored beside it.
    private(set) var hasRead = false

    /// One connection to the bus, shared by the profiles of a load.
    final class Connection {
        let service: UnsafeMutablePointer<SecretService>

        /// The program that owns `org.freedesktop.secrets`, for people.
        let owner: String

        fileprivate init(_ service: UnsafeMutablePointer<SecretService>, owner: String) {
            self.service = service
            self.owner = owner
        }

        /// Whether what is stored is written when the store returns.
        var writesAtOnce: Bool { owner.hasPrefix("gnome-keyring") }

        deinit { g_object_unref(service) }
    }

    /// An item's proxy; unreferenced when it goes.
    private final class OpaqueItem {
        let pointer: UnsafeMutablePointer<SecretItem>

        init(retaining pointer: UnsafeMutablePointer<SecretItem>) {
            self.pointer = pointer
            g_object_ref(pointer)
        }

        deinit { g_object_unref(pointer) }
    }

    init(_ connection: Connection, profile: ProfileName, machine: String, memory: SecretMemory) {
        self.connection = connection
        self.profile = profile
        self.machine = machine
        self.memory = memory
    }

    /// Connects to the bus and to whoever answers for the keyring.
    static func connect() -> Reading<Connection> {
        clibsecret_forbid_prompts()
        return bounded { cancellable, error in
            // Not libsecret's own one, which it keeps even when its bus is gone.
            guard
                let service = secret_service_open_sync(
                    secret_service_get_type(), nil, SECRET_SERVICE_NONE, cancellable, &error)
            else { return nil }
            // GDBus would end us with the bus, before the failure could be told.
            g_dbus_connection_set_exit_on_close(
                g_dbus_proxy_get_connection(clibsecret_proxy(service)), 0)
            return Connection(service, owner: ownerName(service, cancellable))
        }
    }

    /// Makes sure that the next ``connect()`` does not get a connection whose bus is gone.
    static func forgetClosedConnection() { clibsecret_forget_closed() }

    /// The profiles that the keyring holds, whatever else is known of them, and for whichever machine:
    /// the user of a home that was copied is told so.
    static func profiles(_ connection: Connection) -> Reading<Set<ProfileName>> {
        switch unlockDefault(connection) {
        case .failed(let failure): return .failed(failure)
        case .found: break
        }
        return bounded { cancellable, error in
            let attributes = clibsecret_attributes(nil, nil)
            defer { g_hash_table_unref(attributes) }
            let list = secret_service_search_sync(
                connection.service, clibsecret_session_schema(), attributes, SECRET_SEARCH_ALL,
                cancellable, &error)
            guard error == nil else { return nil }
            defer { clibsecret_free_objects(list) }
            var profiles: Set<ProfileName> = []
            var link = list
            while let node = link {
                if let name = name(of: clibsecret_item(node.pointee.data)) {
                    profiles.insert(name)
                }
                link = node.pointee.next
            }
            return profiles
        }
    }

    private static func name(of item: UnsafeMutablePointer<SecretItem>?) -> ProfileName? {
        guard let item, let attributes = secret_item_get_attributes(item) else { return nil }
        defer { g_hash_table_unref(attributes) }
        guard let text = clibsecret_attribute(attributes, "profile") else { return nil }
        do throws(ProfileName.Malformed) {
            return try ProfileName(String(cString: text))
        } catch {
            return nil  // Not an item of ours, whatever its schema says.
        }
    }

    // MARK: Reading

    func read(knowing signIns: KnownSignIns?) -> Reading<ItemContents> {
        item = nil
        hasRead = false
        let hasDefault: Bool
        switch SecretServiceStore.unlockDefault(connection) {
        case .found(let found): hasDefault = found
        case .failed(let failure): return .failed(failure)
        }
        let matches: [OpaqueItem]
        switch search(machine) {
        case .found(let items): matches = items
        case .failed(let failure): return .failed(failure)
        }
        if matches.contains(where: { secret_item_get_locked($0.pointer) != 0 }) {
            return .failed(SecretServiceStore.locked)
        }
        switch best(of: matches, knowing: signIns) {
        case .failed(let failure):
            return .failed(failure)
        case .found(let session?):
            hasRead = true
            return .found(.session(session))
        case .found(nil):
            break
        }
        guard hasDefault || item != nil else {
            return .failed(
                Failure(
                    .keyringUnavailable,
                    "the Secret Service (\(connection.owner)) has no default collection"))
        }
        switch search(nil) {
        case .found(let others):
            hasRead = true
            return .found(others.count > matches.count ? .otherMachine : .none)
        case .failed(let failure):
            return .failed(failure)
        }
    }

    static var locked: Failure {
        Failure(.keyringLocked, "the keyring is locked")
    }

    /// The highest generation of a sign-in among `signIns`, or else of any; nil if no item holds a
    /// session.
    ///
    /// Sets the item that will be rewritten.
    private func best(
        of matches: [OpaqueItem], knowing signIns: KnownSignIns?
    ) -> Reading<StoredSession?> {
        var best: (session: StoredSession, isKnown: Bool)?
        var damage: Failure?
        for match in matches {
            switch session(in: match) {
            case .failed(let failure):
                // A damaged item must not hide a good one; without one it is what is deleted.
                damage = failure
                if best == nil { item = match }
            case .found(nil):
                // An item without a secret was never stored; it is the one to write into.
                if best == nil { item = match }
            case .found(let session?):
                let isKnown = signIns?.knowsAlive(session.header.signIn) ?? false
                if let best, best.isKnown && !isKnown { continue }
                if let best, best.isKnown == isKnown,
                    best.session.header.generation >= session.header.generation
                {
                    continue
                }
                best = (session, isKnown)
                item = match
            }
        }
        if best == nil, let damage { return .failed(damage) }
        return .found(best?.session)
    }

    private func session(in match: OpaqueItem) -> Reading<StoredSession?> {
        guard let value = secret_item_get_secret(match.pointer) else {
            // Unlocked, found, and no secret was sent: to be told from an empty one.
            return .failed(
                Failure(.keyringUnavailable, "the keyring did not send the item's secret"))
        }
        defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
        var count: gsize = 0
        guard let bytes = secret_value_get(value, &count), count > 0 else { return .found(nil) }
        do throws(StoredSession.Unreadable) {
            return .found(
                try StoredSession(
                    decoding: UnsafeRawBufferPointer(start: bytes, count: Int(count)), in: memory))
        } catch {
            switch error {
            case .newerFormat(let version):
                return .failed(
                    Failure(
                        .keyringUnavailable,
                        "the stored session was written by a later version of canopyd "
                            + "(format \(version)); use that version"))
            case .malformed(let member):
                return .failed(
                    Failure(
                        .keyringUnavailable,
                        "the stored session is damaged at \"\(member)\"; "
                            + "sign out with --local and sign in again"))
            }
        }
    }

    private func search(_ machine: String?) -> Reading<[OpaqueItem]> {
        SecretServiceStore.bounded { [self] cancellable, error in
            let attributes = clibsecret_attributes(profile.text, machine)
            defer { g_hash_table_unref(attributes) }
            let flags = SecretSearchFlags(
                rawValue: SECRET_SEARCH_ALL.rawValue | SECRET_SEARCH_LOAD_SECRETS.rawValue)
            let list = secret_service_search_sync(
                connection.service, clibsecret_session_schema(), attributes, flags, cancellable,
                &error)
            guard error == nil else { return nil }
            defer { clibsecret_free_objects(list) }
            var items: [OpaqueItem] = []
            var link = list
            while let node = link {
                if let pointer = clibsecret_item(node.pointee.data) {
                    items.append(OpaqueItem(retaining: pointer))
                }
                link = node.pointee.next
            }
            return items
        }
    }

    /// Unlocks the default collection where that needs nobody; false if there is no such collection.
    ///
    /// The `Locked` property proves nothing: KWallet and plaintext keyrings report it while they are
    /// usable. The answer to `Unlock` does: a prompt's path means locked, and the prompt is left
    /// alone.
    private static func unlockDefault(_ connection: Connection) -> Reading<Bool> {
        let alias = call(connection, "ReadAlias", clibsecret_variant_string("default"))
        let path: String
        switch alias {
        case .failed(let failure): return .failed(failure)
        case .found(let answer): path = take(clibsecret_single_path(answer.value))
        }
        guard path != "/" else { return .found(false) }
        switch call(connection, "Unlock", clibsecret_variant_paths(path)) {
        case .failed(let failure):
            return .failed(failure)
        case .found(let answer):
            let prompt = take(clibsecret_prompt_of(answer.value))
            return prompt == "/" ? .found(true) : .failed(locked)
        }
    }

    // MARK: Writing

    func write(_ session: StoredSession) -> Failure? {
        let bytes = session.encoded(in: memory)
        let value = bytes.withBytes { bytes in
            secret_value_new(
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self), gssize(bytes.count),
                "application/json")
        }
        guard let value else {
            preconditionFailure("libsecret takes any bytes of a non-negative length")
        }
        defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
        return item == nil ? create(value) : rewrite(value)
    }

    private func rewrite(_ value: OpaquePointer) -> Failure? {
        guard let item else { return nil }
        return SecretServiceStore.boundedCall { cancellable, error in
            _ = secret_item_set_secret_sync(item.pointer, value, cancellable, &error)
        }
    }

    private func create(_ value: OpaquePointer) -> Failure? {
        let created: Reading<OpaqueItem> = SecretServiceStore.bounded {
            [self] cancellable, error in
            guard
                let collection = secret_collection_for_alias_sync(
                    connection.service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE,
                    cancellable, &error)
            else { return nil }
            defer { g_object_unref(collection) }
            let attributes = clibsecret_attributes(profile.text, machine)
            defer { g_hash_table_unref(attributes) }
            guard
                let made = secret_item_create_sync(
                    collection, clibsecret_session_schema(), attributes,
                    "Canopy session: \(profile.text)", value, SECRET_ITEM_CREATE_NONE,
                    cancellable, &error)
            else { return nil }
            defer { g_object_unref(made) }
            return OpaqueItem(retaining: made)
        }
        switch created {
        case .found(let made):
            item = made
            return nil
        case .failed(let failure):
            return failure
        }
    }

    /// Deletes the item that was read; nothing if there is none.
    func delete() -> Failure? {
        guard let item else { return nil }
        let failure = SecretServiceStore.boundedCall { cancellable, error in
            _ = secret_item_delete_sync(item.pointer, cancellable, &error)
        }
        if failure == nil { self.item = nil }
        return failure
    }

    /// Makes gnome-keyring's last rename survive a power cut: it fsyncs the file and renames it, but
    /// never fsyncs the directory.
    func sync() -> Failure? {
        guard let data = SecretServiceStore.dataDirectory else { return nil }
        let path = data + "/keyrings"
        do throws(SystemError) {
            try Directory.sync(path)
            return nil
        } catch {
            // No such directory: the owner is another program, or has a home of its own.
            if error.code == ENOENT { return nil }
            return Failure(.storageFailed, "\(error)")
        }
    }

    private static var dataDirectory: String? {
        if let data = getenv("XDG_DATA_HOME"), data.pointee == CChar(UInt8(ascii: "/")) {
            return String(cString: data)
        }
        return getenv("HOME").map { String(cString: $0) + "/.local/share" }
    }

    // MARK: Calls

    /// A reply; unreferenced when it goes.
    final class Answer {
        let value: OpaquePointer

        init(owning value: OpaquePointer) {
            self.value = value
        }

        deinit { g_variant_unref(value) }
    }

    static func call(
        _ connection: Connection, _ method: String, _ parameters: OpaquePointer?
    ) -> Reading<Answer> {
        bounded { cancellable, error in
            g_dbus_proxy_call_sync(
                clibsecret_proxy(connection.service), method, parameters,
                G_DBUS_CALL_FLAGS_NONE, gint(callPatience.milliseconds),
                cancellable, &error
            ).map(Answer.init(owning:))
        }
    }

    /// Takes over a string of GLib's.
    static func take(_ text: UnsafeMutablePointer<CChar>?) -> String {
        guard let text else { return "/" }
        defer { g_free(text) }
        return String(cString: text)
    }

    /// The owner's process name, as the kernel has it; its bus name where that is not to be had.
    private static func ownerName(
        _ service: UnsafeMutablePointer<SecretService>, _ cancellable: OpaqueCancellable?
    ) -> String {
        let proxy = clibsecret_proxy(service)
        guard let name = g_dbus_proxy_get_name_owner(proxy) else { return "nobody" }
        defer { g_free(name) }
        let pid = clibsecret_process_of(
            g_dbus_proxy_get_connection(proxy), name, gint(callPatience.milliseconds),
            cancellable)
        guard pid > 0 else { return String(cString: name) }
        do throws(SystemError) {
            let file = try FileDescriptor.open("/proc/\(pid)/comm", O_RDONLY)
            let bytes = try file.readAll(limit: 64, subject: "comm")
            return String(decoding: bytes.prefix { $0 != 10 }, as: UTF8.self)
        } catch {
            return String(cString: name)
        }
    }

    typealias OpaqueCancellable = UnsafeMutablePointer<GCancellable>
    typealias ErrorSlot = UnsafeMutablePointer<GError>?

    /// Runs a call under the deadline.
    ///
    /// nil from `body` means that `error` says why.
    static func bounded<Value>(
        _ body: (OpaqueCancellable?, inout ErrorSlot) -> Value?
    ) -> Reading<Value> {
        let deadline = clibsecret_deadline_begin(
            gint64(callPatience.nanoseconds / 1000), gint64(callGrace.nanoseconds / 1000),
            Hopeless.end)
        var error: ErrorSlot = nil
        let value = body(deadline?.pointee.cancellable, &error)
        let timedOut = clibsecret_deadline_end(deadline) != 0
        defer { if let error { g_error_free(error) } }
        if let value, error == nil { return .found(value) }
        if timedOut {
            return .failed(
                Failure(
                    .keyringUnavailable,
                    "the keyring did not answer within \(callPatience.wholeSeconds) s"))
        }
        return .failed(failure(error))
    }

    static func boundedCall(
        _ body: (OpaqueCancellable?, inout ErrorSlot) -> Void
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

    private static func failure(_ error: ErrorSlot) -> Failure {
        guard let error else {
            return Failure(
                .keyringUnavailable, "the Secret Service has no default collection")
        }
        let message = String(cString: error.pointee.message)
        if g_error_matches(
            error, secret_error_get_quark(), gint(SECRET_ERROR_IS_LOCKED.rawValue)) != 0
        {
            return locked
        }
        let isAbsent =
            g_error_matches(
                error, g_dbus_error_quark(), gint(G_DBUS_ERROR_SERVICE_UNKNOWN.rawValue)) != 0
        return Failure(
            .keyringUnavailable,
            isAbsent ? "no program offers the Secret Service on this bus (\(message))" : message)
    }
}
