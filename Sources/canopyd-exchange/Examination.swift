internal import AgentCore
internal import CLibsecret
internal import Glibc
internal import LinuxSystem

/// What the doctor cannot look at without libraries: the message bus, the Secret Service, and the
/// way to the servers.
///
/// Nothing of any session is read, and no prompt is ever raised.
struct Examination {
    private let job: Job
    private let channel: Channel
    private let memory: SecretMemory

    init(of job: Job, _ channel: Channel, _ memory: SecretMemory) {
        self.job = job
        self.channel = channel
        self.memory = memory
    }

    /// The findings, as JSON.
    func run() -> Secret {
        Unresponsive.prepare(channel, for: [.standard])
        var findings = keyring()
        // Reaching a server may take as long as it does: the calls to the bus are over.
        Unresponsive.forgetLastWords()
        for server in job.servers { findings += reach(server) }
        var writer = JSONWriter(into: SecretBuffer(in: memory))
        writer.beginObject()
        writer.key("findings")
        writer.beginArray()
        for finding in findings { finding.write(to: &writer) }
        writer.endArray()
        writer.endObject()
        return writer.finish().secret()
    }

    // MARK: The keyring

    private func keyring() -> [Finding] {
        guard getenv("DBUS_SESSION_BUS_ADDRESS") != nil || hasUserBus else {
            return [
                Finding(
                    .messageBus, .failed,
                    "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and the runtime "
                        + "directory has no socket named bus",
                    fix: SystemdVersion.isRunning
                        ? "sudo apt-get install dbus-user-session" : Examination.busByHand)
            ]
        }
        switch SecretServiceConnection.open() {
        case .failed(let failure):
            // It was not even asked for: that is the bus's failure, or the user's wish.
            guard failure.remedy == .examination else { return [Examination.noService(failure)] }
            let fix = "systemctl --user restart dbus"
            return [
                Finding(
                    .messageBus, .failed, failure.detail,
                    fix: SystemdVersion.isRunning ? fix : Examination.busByHand)
            ]
        case .found(let connection):
            return [Finding(.messageBus, .ok, "the session bus answers")] + service(connection)
        }
    }

    /// A shell with a bus, for a keyring and canopyd to be started in.
    private static let busByHand = "dbus-run-session -- \"$SHELL\""

    /// Where the bus is that systemd starts for every user.
    private var hasUserBus: Bool {
        guard let directory = getenv("XDG_RUNTIME_DIR") else { return false }
        return access(String(cString: directory) + "/bus", F_OK) == 0
    }

    private static func noService(_ failure: Failure) -> Finding {
        let backEnd = getenv("SECRET_BACKEND").map { String(cString: $0) }
        return Finding(
            .secretService, .failed, failure.detail,
            fix: KeyringOwner.refusal(ofBackEnd: backEnd) == nil
                ? "sudo apt-get install gnome-keyring" : KeyringOwner.backEndFix)
    }

    private func service(_ connection: SecretServiceConnection) -> [Finding] {
        let alias = connection.call("ReadAlias", clibsecret_variant_string("default"))
        let path: String
        switch alias {
        case .failed(let failure):
            // That there is nobody is told by the first call, and not by connecting.
            return [Examination.noService(failure)]
        case .found(let answer):
            path = KeyringCall.take(clibsecret_single_path(answer.value))
        }
        let name = connection.owner ?? connection.keeper.name
        let owner = Finding(
            .secretService, .ok, connection.keeper.limit.map { "\(name): \($0)" } ?? name)
        guard path != "/" else {
            return [
                owner,
                Finding(
                    .collection, .failed, "there is no default collection to keep a session in",
                    fix: connection.keeper.unlocking),
            ]
        }
        return [owner, Finding(.collection, .ok, path)] + unlocked(connection, path)
    }

    private func unlocked(
        _ connection: SecretServiceConnection, _ path: String
    ) -> [Finding] {
        switch connection.call("Unlock", clibsecret_variant_paths(path)) {
        case .failed(let failure):
            return [Finding(.unlocked, .failed, failure.detail)]
        case .found(let answer):
            let prompt = KeyringCall.take(clibsecret_prompt_of(answer.value))
            guard prompt == "/" else {
                return [
                    Finding(
                        .unlocked, .failed,
                        "the collection is locked, and unlocking it needs somebody to answer",
                        fix: connection.keeper.unlocking)
                ]
            }
            guard !connection.keeper.asksForEachItem else {
                return [
                    Finding(.unlocked, .ok, "the collection is unlocked"),
                    Finding(
                        .probe, .skipped,
                        "\(connection.keeper.name) would ask before the item is deleted again"),
                ]
            }
            // The property and exit codes prove nothing: only a write that is read back does.
            return [Finding(.unlocked, .ok, "the collection is unlocked"), probe(connection)]
        }
    }

    /// Writes an item, reads it back and deletes it.
    private func probe(_ connection: SecretServiceConnection) -> Finding {
        let text = "canopyd-probe-\(Randomness.word())"
        let outcome: Reading<String?> = KeyringCall.bounded { cancellable, error in
            guard
                let collection = secret_collection_for_alias_sync(
                    connection.service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE,
                    cancellable, &error)
            else { return nil }
            defer { g_object_unref(collection) }
            let attributes = clibsecret_attributes(text, nil)
            defer { g_hash_table_unref(attributes) }
            guard let value = secret_value_new(text, -1, "text/plain") else { return nil }
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            guard
                let item = secret_item_create_sync(
                    collection, clibsecret_probe_schema(), attributes, "canopyctl doctor", value,
                    SECRET_ITEM_CREATE_NONE, cancellable, &error)
            else { return nil }
            defer { g_object_unref(item) }
            var isEqual = false
            if secret_item_load_secret_sync(item, cancellable, &error) != 0,
                let stored = secret_item_get_secret(item)
            {
                isEqual = secret_value_get_text(stored).map { String(cString: $0) } == text
                secret_value_unref(UnsafeMutableRawPointer(stored))
            }
            // Deleted whatever was read: what fails first is what is told.
            var second: KeyringCall.ErrorSlot = nil
            _ = secret_item_delete_sync(item, cancellable, &second)
            if error == nil { error = second } else if let second { g_error_free(second) }
            guard error == nil else { return nil }
            return .some(isEqual ? nil : "what was read back is not what was written")
        }
        switch outcome {
        case .failed(let failure): return Finding(.probe, .failed, failure.detail)
        case .found(let fault?): return Finding(.probe, .failed, fault)
        case .found(nil):
            return Finding(.probe, .ok, "an item was written, read back and deleted")
        }
    }

    // MARK: The servers

    private func reach(_ server: String) -> [Finding] {
        let base: BaseURL
        do throws(BaseURL.Malformed) {
            base = try BaseURL(server)
        } catch {
            return [Finding(.server, .failed, "\(server): \(error)")]
        }
        let look = "curl -sSv -o /dev/null \(base.text)/v1/identity/auth/me"
        let client = CanopyClient(caFile: job.caFile, proxy: job.proxy, memory: memory)
        switch client.send(.examination(at: base)) {
        case .notSent(let detail), .lost(let detail):
            return [Finding(.server, .failed, "\(base.text): \(detail)", fix: look)]
        case .answered(let answer):
            let isCanopy = answer.body.withBytes {
                CanopyBody($0, of: answer).isEnvelope
            }
            guard isCanopy else {
                return [
                    Finding(
                        .server, .failed,
                        "\(base.text): status \(answer.status) that is not Canopy's: captive portal, "
                            + "proxy or another server?", fix: look)
                ]
            }
            return [Finding(.server, .ok, "\(base.text) answers"), clock(answer, base)]
        }
    }

    /// Differences below this change nothing: canopyd corrects by what the server says.
    private static let tolerance = TimeSpan.seconds(30)

    private func clock(_ answer: CanopyAnswer, _ base: BaseURL) -> Finding {
        guard let theirs = answer.date.flatMap(Timestamp.http) else {
            return Finding(.clock, .skipped, "\(base.text) does not say what time it is")
        }
        let ours = Moment.now.wall
        let ahead = ours - theirs
        let size = ahead < .zero ? .zero - ahead : ahead
        guard size > Examination.tolerance else {
            return Finding(.clock, .ok, "the clock agrees with the server's")
        }
        return Finding(
            .clock, .warning,
            "this machine's clock is \(size.inWords) \(ahead < .zero ? "behind" : "ahead of") the "
                + "server's: \(Timestamp.rfc3339(ours)) here, \(Timestamp.rfc3339(theirs)) at "
                + "\(base.text). If it is right here, the server's is wrong; canopyd allows for "
                + "either, and other programs may not",
            fix: "sudo timedatectl set-ntp true")
    }
}
