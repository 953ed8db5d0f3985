internal import AgentCore
internal import CLibsecret
internal import Glibc
internal import LinuxSystem

/// One profile's item in the Secret Service, through libsecret.
///
/// Every call is bounded in time, and none ever raises a prompt.
final class SecretServiceStore {
    private let connection: SecretServiceConnection
    private let profile: ProfileName
    private let machine: String
    private let memory: SecretMemory

    /// The item that was read last: the one to be rewritten, wherever the default alias points.
    private var item: OpaqueItem?

    /// The collection that a new item would be put into.
    private var place: String?

    /// Whether it was looked for: what was not must not be stored beside it.
    private(set) var hasRead = false

    /// Whether the item holds bytes that are no session to this program.
    private(set) var holdsUnreadableItem = false

    /// An item's proxy; unreferenced when it goes.
    private final class OpaqueItem {
        let pointer: UnsafeMutablePointer<SecretItem>

        init(retaining pointer: UnsafeMutablePointer<SecretItem>) {
            self.pointer = pointer
            g_object_ref(pointer)
        }

        deinit { g_object_unref(pointer) }

        /// The collection that it lies in: an item's path is its collection's and a name.
        var collection: String {
            guard let path = g_dbus_proxy_get_object_path(clibsecret_proxy(pointer)) else {
                return "/"
            }
            let text = String(cString: path)
            return text.lastIndex(of: "/").map { String(text[..<$0]) } ?? "/"
        }

        func attribute(_ name: String) -> String? {
            guard let attributes = secret_item_get_attributes(pointer) else { return nil }
            defer { g_hash_table_unref(attributes) }
            return clibsecret_attribute(attributes, name).map { String(cString: $0) }
        }
    }

    init(
        _ connection: SecretServiceConnection, profile: ProfileName, machine: String,
        memory: SecretMemory
    ) {
        self.connection = connection
        self.profile = profile
        self.machine = machine
        self.memory = memory
    }

    /// The profiles that the keyring holds, whatever else is known of them, and what keeps the list from
    /// being complete.
    ///
    /// For whichever machine: the user of a home that was copied is told so.
    static func profiles(
        _ connection: SecretServiceConnection
    ) -> (found: Set<ProfileName>, failure: Failure?) {
        var failure: Failure?
        switch connection.openStandard() {
        case .failed(let cause): return ([], cause)
        case .found(.locked(let path)): failure = connection.lockedFailure(path)
        case .found(.open), .found(.none): break
        }
        switch search(connection, profile: nil, nil, loadingSecrets: false) {
        case .failed(let cause):
            return ([], cause)
        case .found(let items):
            return (Set(items.compactMap(name)), failure)
        }
    }

    private static func name(of item: OpaqueItem) -> ProfileName? {
        guard let text = item.attribute("profile") else { return nil }
        do throws(ProfileName.Malformed) {
            return try ProfileName(text)
        } catch {
            return nil  // Not an item of ours, whatever its schema says.
        }
    }

    // MARK: Reading

    func read(knowing signIns: KnownSignIns?) -> Reading<ItemContents> {
        item = nil
        hasRead = false
        holdsUnreadableItem = false
        let standard: SecretServiceConnection.Standard
        switch connection.openStandard() {
        case .found(let found): standard = found
        case .failed(let failure): return .failed(failure)
        }
        place = standard.path
        let matches: [OpaqueItem]
        switch openMatches(standard, isExpected: signIns?.expectsItem == true) {
        case .found(let items): matches = items
        case .failed(let failure): return .failed(failure)
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
        if item == nil, let failure = placelessness(standard) { return .failed(failure) }
        switch search(nil) {
        case .found(let others):
            hasRead = true
            return .found(others.count > matches.count ? .otherMachine : .none)
        case .failed(let failure):
            return .failed(failure)
        }
    }

    /// The profile's items, each in a collection that is open.
    ///
    /// An item may lie outside the default collection, behind a lock of its own. And many a service
    /// hides what is locked, so that an item which `isExpected` is only absent once nothing is
    /// locked any more.
    private func openMatches(
        _ standard: SecretServiceConnection.Standard, isExpected: Bool
    ) -> Reading<[OpaqueItem]> {
        var matches: [OpaqueItem]
        switch search(machine) {
        case .failed(let failure): return .failed(failure)
        case .found(let items): matches = items
        }
        var places = Set(matches.map(\.collection))
        if matches.isEmpty {
            if case .locked(let path) = standard {
                return .failed(connection.lockedFailure(path))
            }
            guard isExpected else { return .found([]) }
            switch connection.collections() {
            case .failed(let failure): return .failed(failure)
            case .found(let paths): places = Set(paths)
            }
        }
        switch standard {
        case .locked(let path) where places.contains(path):
            return .failed(connection.lockedFailure(path))
        case .open(let path):
            places.remove(path)
        case .locked, .none:
            break
        }
        guard !places.isEmpty else { return .found(matches) }
        switch connection.unlock(places.sorted()) {
        case .failed(let failure):
            return .failed(failure)
        case .found(let closed):
            if let path = closed.first { return .failed(connection.lockedFailure(path)) }
        }
        // Of what was locked the secrets were not sent.
        switch search(machine) {
        case .failed(let failure): return .failed(failure)
        case .found(let items): matches = items
        }
        return .found(matches)
    }

    /// Why a new item could not be put anywhere; nil if it can.
    private func placelessness(_ standard: SecretServiceConnection.Standard) -> Failure? {
        guard let path = standard.path else {
            return Failure(
                .keyringUnavailable,
                "the Secret Service (\(connection.keeper.name)) has no default collection")
        }
        guard !connection.hasCollection(path) else { return nil }
        return Failure(
            .keyringUnavailable,
            "the default collection of the Secret Service (\(connection.keeper.name)) does not exist"
        )
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
            case .failed(let failure) where failure.kind == .keyringLocked:
                return .failed(failure)
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
        let value: OpaquePointer
        switch secret(of: match) {
        case .failed(let failure):
            return .failed(failure)
        case .found(nil):
            // Unlocked, found, and no secret was sent: to be told from an empty one.
            return .failed(
                Failure(
                    .keyringUnavailable, "the keyring did not send the item's secret",
                    remedy: .examination))
        case .found(let sent?):
            value = sent
        }
        defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
        var count: gsize = 0
        guard let bytes = secret_value_get(value, &count), count > 0 else { return .found(nil) }
        do throws(StoredSession.Unreadable) {
            return .found(
                try StoredSession(
                    decoding: UnsafeRawBufferPointer(start: bytes, count: Int(count)), in: memory))
        } catch {
            holdsUnreadableItem = true
            switch error {
            case .newerFormat(let version):
                return .failed(
                    Failure(
                        .keyringUnavailable,
                        "the stored session was written by a later version of canopyd "
                            + "(format \(version)); use that version, or give the session up with "
                            + "canopyctl logout --local", remedy: .laterVersion))
            case .malformed(let member):
                return .failed(
                    Failure(
                        .keyringUnavailable,
                        "the stored session is damaged at \"\(member)\"", remedy: .signInAnew))
            }
        }
    }

    private func search(_ machine: String?) -> Reading<[OpaqueItem]> {
        SecretServiceStore.search(connection, profile: profile, machine, loadingSecrets: true)
    }

    private static func search(
        _ connection: SecretServiceConnection, profile: ProfileName?, _ machine: String?,
        loadingSecrets: Bool
    ) -> Reading<[OpaqueItem]> {
        connection.bounded { cancellable, error in
            let attributes = clibsecret_attributes(profile?.text, machine)
            defer { g_hash_table_unref(attributes) }
            let secrets = loadingSecrets ? SECRET_SEARCH_LOAD_SECRETS.rawValue : 0
            let flags = SecretSearchFlags(rawValue: SECRET_SEARCH_ALL.rawValue | secrets)
            let list = secret_service_search_sync(
                connection.service, clibsecret_session_schema(), attributes, flags, cancellable,
                &error)
            guard error == nil else { return nil }
            defer { clibsecret_free_objects(list) }
            var items: [OpaqueItem] = []
            var link = list
            while let node = link {
                if let pointer = clibsecret_item(node.pointee.data) {
                    let item = OpaqueItem(retaining: pointer)
                    // Some services search loosely, and find other profiles' items as well.
                    if profile == nil || item.attribute("profile") == profile?.text,
                        machine == nil || item.attribute("machine") == machine
                    {
                        items.append(item)
                    }
                }
                link = node.pointee.next
            }
            return items
        }
    }

    /// The secret of an item in an open collection; nil if there is none.
    ///
    /// libsecret leaves out those of items that call themselves locked, though KWallet's do so while
    /// they are usable: these are asked for one by one.
    private func secret(of match: OpaqueItem) -> Reading<OpaquePointer?> {
        if let value = secret_item_get_secret(match.pointer) { return .found(value) }
        let failure = connection.boundedAction { cancellable, error in
            _ = secret_item_load_secret_sync(match.pointer, cancellable, &error)
        }
        if let failure {
            guard failure.kind == .keyringLocked else { return .failed(failure) }
            return .failed(connection.lockedFailure(match.collection))
        }
        return .found(secret_item_get_secret(match.pointer))
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
        let failure = item.map { rewrite($0, value) } ?? create(value)
        if failure?.kind == .keyringLocked, let path = item?.collection ?? place {
            connection.onLocked(path)
        }
        return failure
    }

    private func rewrite(_ item: OpaqueItem, _ value: OpaquePointer) -> Failure? {
        connection.boundedAction { cancellable, error in
            _ = secret_item_set_secret_sync(item.pointer, value, cancellable, &error)
        }
    }

    private func create(_ value: OpaquePointer) -> Failure? {
        // An open collection's prompt for a new item shows nothing, and has this call's deadline.
        if connection.keeper.asksForEachItem { clibsecret_allow_prompts(connection.service, 1) }
        defer { clibsecret_allow_prompts(connection.service, 0) }
        let created: Reading<OpaqueItem> = connection.bounded {
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
        if connection.keeper.asksForEachItem { return clear(item) }
        let failure = connection.boundedAction { cancellable, error in
            _ = secret_item_delete_sync(item.pointer, cancellable, &error)
        }
        if failure == nil { self.item = nil }
        return failure
    }

    /// Leaves an item that was never stored in place of one whose deletion would ask somebody.
    private func clear(_ item: OpaqueItem) -> Failure? {
        guard let nothing = secret_value_new("", 0, "application/json") else {
            preconditionFailure("libsecret takes any bytes of a non-negative length")
        }
        defer { secret_value_unref(UnsafeMutableRawPointer(nothing)) }
        return rewrite(item, nothing)
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
}
