/// What an exchange tells canopyd: how far it is, and how it ended.
package enum Report: Sendable {
    case progress(ExchangeProgress)
    /// The end of one profile's part; a load has one for each.
    case ended(ProfileName, ExchangeOutcome)
    /// How the keyring is.
    case keyring(KeyringStanding)
    /// A load has told of every profile that the keyring holds, or why it could not.
    case searched(Failure?)
    /// The kernel does not let the exchange lock its memory, for this reason.
    case memoryUnlocked(String)

    private enum Kind {
        static let presenting: UInt8 = 1
        static let retrying: UInt8 = 2
        static let keyring: UInt8 = 3
        static let searched: UInt8 = 4
        static let memoryUnlocked: UInt8 = 5
        static let session: UInt8 = 10
        static let tooEarly: UInt8 = 11
        static let failed: UInt8 = 12
        static let signInRequired: UInt8 = 13
        static let signedOut: UInt8 = 14
        static let rejected: UInt8 = 15
        static let challenged: UInt8 = 16
        static let document: UInt8 = 17
        static let tokenRefused: UInt8 = 18
    }

    private enum Tag {
        static let profile: UInt8 = 1
        static let failureKind: UInt8 = 2
        static let detail: UInt8 = 3
        static let wait: UInt8 = 4
        static let reason: UInt8 = 5
        static let secret: UInt8 = 6
        static let cause: UInt8 = 7
        static let collection: UInt8 = 8
        static let signIn: UInt8 = 10
        static let generation: UInt8 = 11
        static let baseURL: UInt8 = 12
        static let publishableKey: UInt8 = 13
        static let identityID: UInt8 = 14
        static let identityEmail: UInt8 = 15
        static let signedInAt: UInt8 = 16
        static let anchorInode: UInt8 = 17
        static let anchorBirth: UInt8 = 18
        static let lastRotation: UInt8 = 19
        static let notBefore: UInt8 = 20
        static let notBeforeSpan: UInt8 = 21
        static let isAmbiguous: UInt8 = 22
        static let factor: UInt8 = 23
        static let challengeExpiry: UInt8 = 24
        static let slotKeptFor: UInt8 = 25
        static let isSlotRewritten: UInt8 = 26
        static let remedy: UInt8 = 27
        static let accessToken: UInt8 = 30
        static let accessType: UInt8 = 31
        static let accessLifetime: UInt8 = 32
        static let accessExpiry: UInt8 = 33
        static let accessOffset: UInt8 = 34
        static let accessSent: UInt8 = 35
    }

    package func encoded(in memory: SecretMemory) -> Secret {
        switch self {
        case .progress(.presenting):
            return FieldWriter(kind: Kind.presenting, in: memory).finish(in: memory)
        case .progress(.retrying(let failure)):
            var writer = FieldWriter(kind: Kind.retrying, in: memory)
            Report.write(failure, to: &writer)
            return writer.finish(in: memory)
        case .keyring(let standing):
            var writer = FieldWriter(kind: Kind.keyring, in: memory)
            writer.field(Tag.reason, standing.state.rawValue)
            writer.field(Tag.detail, standing.owner)
            writer.field(Tag.collection, standing.collection)
            return writer.finish(in: memory)
        case .searched(let failure):
            var writer = FieldWriter(kind: Kind.searched, in: memory)
            if let failure { Report.write(failure, to: &writer) }
            return writer.finish(in: memory)
        case .memoryUnlocked(let reason):
            var writer = FieldWriter(kind: Kind.memoryUnlocked, in: memory)
            writer.field(Tag.detail, reason)
            return writer.finish(in: memory)
        case .ended(let profile, let outcome):
            return Report.encoded(outcome, profile, in: memory)
        }
    }

    private static func encoded(
        _ outcome: ExchangeOutcome, _ profile: ProfileName, in memory: SecretMemory
    ) -> Secret {
        var writer = FieldWriter(kind: kind(of: outcome), in: memory)
        writer.field(Tag.profile, profile.text)
        switch outcome {
        case .session(let report):
            write(report, to: &writer)
        case .tooEarly(let report, let wait):
            write(report, to: &writer)
            writer.field(Tag.wait, wait.nanoseconds)
        case .failed(let failure):
            write(failure, to: &writer)
        case .signInRequired(let reason, let words, let account):
            writer.field(Tag.reason, reason.rawValue)
            writer.field(Tag.detail, words)
            if let account { write(account, to: &writer) }
        case .signedOut:
            break
        case .rejected(let rejection):
            writer.field(Tag.failureKind, Int64(rejection.kind.rawValue))
            writer.field(Tag.detail, rejection.detail)
        case .challenged(let challenge):
            writer.field(Tag.signIn, challenge.id.text)
            for factor in challenge.factors { writer.field(Tag.factor, factor) }
            writer.field(Tag.challengeExpiry, challenge.expiresAt.milliseconds)
            writer.field(Tag.secret, challenge.continuation)
        case .document(let secret):
            writer.field(Tag.secret, secret)
        case .tokenRefused(let words):
            writer.field(Tag.detail, words)
        }
        return writer.finish(in: memory)
    }

    private static func kind(of outcome: ExchangeOutcome) -> UInt8 {
        switch outcome {
        case .session: Kind.session
        case .tooEarly: Kind.tooEarly
        case .failed: Kind.failed
        case .signInRequired: Kind.signInRequired
        case .signedOut: Kind.signedOut
        case .rejected: Kind.rejected
        case .challenged: Kind.challenged
        case .document: Kind.document
        case .tokenRefused: Kind.tokenRefused
        }
    }

    private static func write(_ account: KnownSignIns.Account, to writer: inout FieldWriter) {
        writer.field(Tag.baseURL, account.baseURL)
        writer.field(Tag.identityID, account.identity.id)
        writer.field(Tag.identityEmail, account.identity.email)
        writer.field(Tag.signedInAt, account.signedInAt.milliseconds)
    }

    private static func write(_ failure: Failure, to writer: inout FieldWriter) {
        writer.field(Tag.failureKind, Int64(failure.kind.rawValue))
        writer.field(Tag.detail, failure.detail)
        writer.field(Tag.wait, failure.wait?.nanoseconds)
        writer.field(Tag.cause, failure.cause.map { Int64($0.rawValue) })
        writer.field(Tag.remedy, failure.remedy.map { Int64($0.rawValue) })
    }

    private static func write(_ report: SessionReport, to writer: inout FieldWriter) {
        let header = report.header
        writer.field(Tag.signIn, header.signIn.text)
        writer.field(Tag.generation, header.generation)
        writer.field(Tag.baseURL, header.baseURL)
        writer.field(Tag.publishableKey, header.publishableKey)
        writer.field(Tag.identityID, header.identity.id)
        writer.field(Tag.identityEmail, header.identity.email)
        writer.field(Tag.signedInAt, header.signedInAt.milliseconds)
        writer.field(Tag.anchorInode, Int64(bitPattern: header.anchor.inode))
        writer.field(Tag.anchorBirth, header.anchor.birth)
        write(Tag.lastRotation, header.lastRotation, to: &writer)
        write(Tag.notBefore, header.notBefore?.since, to: &writer)
        writer.field(Tag.notBeforeSpan, header.notBefore?.span.nanoseconds)
        writer.field(Tag.isAmbiguous, report.isAmbiguous ? 1 : 0)
        if let failure = report.storeFailure { write(failure, to: &writer) }
        writer.field(Tag.slotKeptFor, report.slotKeptFor?.nanoseconds)
        writer.field(Tag.isSlotRewritten, report.isSlotRewritten ? 1 : 0)
        if let token = report.accessToken {
            writer.field(Tag.accessToken, token.value)
            writer.field(Tag.accessType, token.type)
            writer.field(Tag.accessLifetime, token.life.lifetime.nanoseconds)
            writer.field(Tag.accessExpiry, token.life.expiry?.milliseconds)
            writer.field(Tag.accessOffset, token.life.serverClockOffset?.nanoseconds)
            write(Tag.accessSent, token.life.sent, to: &writer)
        }
    }

    private static func write(_ tag: UInt8, _ stamp: Stamp?, to writer: inout FieldWriter) {
        guard let stamp else { return }
        let text =
            "\(stamp.moment.boot.nanoseconds) \(stamp.moment.wall.milliseconds) "
            + stamp.boot.text
        writer.field(tag, text)
    }

    /// Every message that is whole, and how many bytes they take; what is no report is passed over.
    package static func whole(
        in bytes: UnsafeRawBufferPointer, memory: SecretMemory
    ) -> (reports: [Report], consumed: Int) {
        var reports: [Report] = []
        var position = 0
        while case .length(let length) = FieldReader.length(
            UnsafeRawBufferPointer(rebasing: bytes[position...])),
            position + length <= bytes.count
        {
            let body = UnsafeRawBufferPointer(
                rebasing: bytes[(position + 4)..<(position + length)])
            if let report = Report(decoding: body, in: memory) { reports.append(report) }
            position += length
        }
        return (reports, position)
    }

    /// Returns nil if the bytes (without the length in front) are no report.
    package init?(decoding bytes: UnsafeRawBufferPointer, in memory: SecretMemory) {
        guard let fields = FieldReader(bytes) else { return nil }
        switch fields.kind {
        case Kind.presenting:
            self = .progress(.presenting)
            return
        case Kind.retrying:
            guard let failure = Report.failure(fields) else { return nil }
            self = .progress(.retrying(failure))
            return
        case Kind.keyring:
            guard let state = fields.text(Tag.reason).flatMap(KeyringState.init(rawValue:))
            else { return nil }
            self = .keyring(
                KeyringStanding(
                    state, owner: fields.text(Tag.detail), collection: fields.text(Tag.collection)))
            return
        case Kind.searched:
            self = .searched(Report.failure(fields))
            return
        case Kind.memoryUnlocked:
            self = .memoryUnlocked(fields.text(Tag.detail) ?? "")
            return
        default:
            break
        }
        guard let text = fields.text(Tag.profile),
            let outcome = Report.outcome(fields, in: memory)
        else { return nil }
        do throws(ProfileName.Malformed) {
            self = .ended(try ProfileName(text), outcome)
        } catch {
            return nil
        }
    }

    private static func outcome(_ fields: FieldReader, in memory: SecretMemory) -> ExchangeOutcome?
    {
        switch fields.kind {
        case Kind.session:
            return session(fields, in: memory).map(ExchangeOutcome.session)
        case Kind.tooEarly:
            guard let report = session(fields, in: memory), let wait = fields.number(Tag.wait)
            else { return nil }
            return .tooEarly(report, TimeSpan(nanoseconds: wait))
        case Kind.failed:
            return failure(fields).map(ExchangeOutcome.failed)
        case Kind.signInRequired:
            guard let reason = fields.text(Tag.reason).flatMap(SignInReason.init(rawValue:))
            else { return nil }
            return .signInRequired(
                reason, fields.text(Tag.detail) ?? "", account: account(fields))
        case Kind.signedOut:
            return .signedOut
        case Kind.rejected:
            guard let code = fields.number(Tag.failureKind),
                let kind = UInt8(exactly: code).flatMap(Rejection.Kind.init(rawValue:))
            else { return nil }
            return .rejected(Rejection(kind, fields.text(Tag.detail) ?? ""))
        case Kind.challenged:
            return challenge(fields, in: memory).map(ExchangeOutcome.challenged)
        case Kind.document:
            return fields.secret(Tag.secret, in: memory).map(ExchangeOutcome.document)
        case Kind.tokenRefused:
            return .tokenRefused(fields.text(Tag.detail) ?? "")
        default:
            return nil
        }
    }

    private static func challenge(
        _ fields: FieldReader, in memory: SecretMemory
    ) -> SignInChallenge? {
        guard let id = fields.text(Tag.signIn).flatMap(SignInID.init),
            let expiresAt = fields.number(Tag.challengeExpiry),
            let continuation = fields.secret(Tag.secret, in: memory)
        else { return nil }
        return SignInChallenge(
            id: id, factors: fields.all(Tag.factor).map { String(decoding: $0, as: UTF8.self) },
            expiresAt: WallTime(milliseconds: expiresAt), continuation: continuation)
    }

    private static func account(_ fields: FieldReader) -> KnownSignIns.Account? {
        guard let baseURL = fields.text(Tag.baseURL),
            let signedInAt = fields.number(Tag.signedInAt)
        else { return nil }
        return KnownSignIns.Account(
            baseURL: baseURL, identity: identity(fields),
            signedInAt: WallTime(milliseconds: signedInAt))
    }

    private static func identity(_ fields: FieldReader) -> Identity {
        Identity(
            id: fields.text(Tag.identityID) ?? "", email: fields.text(Tag.identityEmail) ?? "")
    }

    private static func failure(_ fields: FieldReader) -> Failure? {
        guard let code = fields.number(Tag.failureKind),
            let kind = UInt8(exactly: code).flatMap(Failure.Kind.init(rawValue:))
        else { return nil }
        return Failure(
            kind, fields.text(Tag.detail) ?? "",
            wait: fields.number(Tag.wait).map(TimeSpan.init(nanoseconds:)),
            cause: fields.number(Tag.cause).flatMap { UInt8(exactly: $0) }
                .flatMap(Failure.Kind.init(rawValue:)),
            remedy: fields.number(Tag.remedy).flatMap { UInt8(exactly: $0) }
                .flatMap(Failure.Remedy.init(rawValue:)))
    }

    private static func session(
        _ fields: FieldReader, in memory: SecretMemory
    ) -> SessionReport? {
        guard let signIn = fields.text(Tag.signIn).flatMap(SignInID.init),
            let generation = fields.number(Tag.generation),
            let baseURL = fields.text(Tag.baseURL),
            let signedInAt = fields.number(Tag.signedInAt),
            let inode = fields.number(Tag.anchorInode),
            let birth = fields.number(Tag.anchorBirth)
        else { return nil }
        var notBefore: NotBefore?
        if let since = stamp(fields, Tag.notBefore), let span = fields.number(Tag.notBeforeSpan) {
            notBefore = NotBefore(since: since, span: TimeSpan(nanoseconds: span))
        }
        let token = accessToken(fields, in: memory)
        let header = SessionHeader(
            signIn: signIn, generation: generation, baseURL: baseURL,
            publishableKey: fields.text(Tag.publishableKey) ?? "",
            identity: identity(fields),
            signedInAt: WallTime(milliseconds: signedInAt),
            anchor: Anchor(inode: UInt64(bitPattern: inode), birth: birth),
            lastRotation: stamp(fields, Tag.lastRotation), notBefore: notBefore,
            access: token?.life)
        return SessionReport(
            header: header, accessToken: token,
            isAmbiguous: fields.number(Tag.isAmbiguous) == 1, storeFailure: failure(fields),
            slotKeptFor: fields.number(Tag.slotKeptFor).map(TimeSpan.init(nanoseconds:)),
            isSlotRewritten: fields.number(Tag.isSlotRewritten) == 1)
    }

    private static func accessToken(
        _ fields: FieldReader, in memory: SecretMemory
    ) -> AccessToken? {
        guard let value = fields.secret(Tag.accessToken, in: memory),
            let lifetime = fields.number(Tag.accessLifetime),
            let sent = stamp(fields, Tag.accessSent)
        else { return nil }
        return AccessToken(
            value: value, type: fields.text(Tag.accessType) ?? "Bearer",
            life: AccessTokenLife(
                lifetime: TimeSpan(nanoseconds: lifetime), sent: sent,
                expiry: fields.number(Tag.accessExpiry).map(WallTime.init(milliseconds:)),
                serverClockOffset: fields.number(Tag.accessOffset).map(
                    TimeSpan.init(nanoseconds:))))
    }

    private static func stamp(_ fields: FieldReader, _ tag: UInt8) -> Stamp? {
        let parts = fields.text(tag)?.split(separator: " ") ?? []
        guard parts.count == 3, let boot = Int64(parts[0]), let wall = Int64(parts[1]) else {
            return nil
        }
        return Stamp(
            Moment(boot: BootTime(nanoseconds: boot), wall: WallTime(milliseconds: wall)),
            boot: BootID(String(parts[2])))
    }
}
